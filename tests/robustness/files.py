"""Damaged files of every kind: only clean faults, no crash, no hang, no memory without bound."""

import json
import os

import mutate
import samples
from workbench import Failure


class Damage:
    """What is done to a content before it is written, and which of several commands reads it."""

    def __init__(self, random):
        self.random = random

    def bytes(self, content):
        return mutate.bytes_damaged(self.random, content)

    def text(self, content):
        return mutate.text_damaged(self.random, content)

    def json(self, document):
        return mutate.json_damaged(self.random, document)

    def safetensors(self, content):
        return mutate.safetensors_damaged(self.random, content)

    def database(self, content):
        return mutate.database_damaged(self.random, content)

    def one_of(self, choices):
        return self.random.choice(choices)


class Whole(Damage):
    """Nothing: to see that an example is read while it is whole."""

    def __init__(self):
        super().__init__(None)

    def bytes(self, content):
        return content

    text = safetensors = database = bytes

    def json(self, document):
        return json.dumps(document).encode()

    def one_of(self, choices):
        return choices[0]


def model_words(bench, command, *more):
    context = [] if command == "tokenize" else ["--untuned", "--device", "cpu", "--context", "256"]
    return [command, "--model", bench.path("model"), *context, *more]


def readers_of_database(bench, path):
    """Every command that reads a database."""
    toys = samples.write_toy(bench)
    return [["show", "trials", "--db", path], ["show", "sessions", "--db", path],
            ["show", "winners", "--db", path, "--json"], ["status", "--db", path, "--json"], ["status", "--db", path],
            *(["report", "--db", path, "-f", form, "-o", bench.path("report.out")] for form in ("md", "html", "csv", "json")),
            ["export", "--format", "t4", "--db", path, "-o", bench.path("exported")],
            ["export", "--format", "csv", "--db", path],
            ["merge", path, "--db", bench.path("merged.db")], ["merge", path, "--db", bench.path("new.db"), "--dry-run"],
            ["replay", path, "--repeats", "1", "--no-score", "-s", "random"],
            ["explain", "--db", path, "--kernel", "toy", *toys],
            ["bundle", "--db", path, "--arch", "emulator", *toys, "-o", bench.path("made.pasc")],
            ["rank", "--against", path, "--kernel", "toy", *toys],
            ["sweep", "--resume", "--db", path],
            samples.short_sweep(bench, path, ["--trials", "2"])]


def database(bench, damage):
    path = samples.swept_database(bench)
    bench.write("tuned.db", damage.database(bench.settings.shared["database"]))
    return damage.one_of(readers_of_database(bench, path)), None


def bundle(bench, damage):
    toys = samples.write_toy(bench)
    shared = bench.settings.shared
    if "bundle" not in shared:
        outcome = bench.run(["bundle", "--untuned", "--arch", "emulator", *toys, "-o", bench.path("made.pasc")], seconds=600)
        if outcome.code != 0:
            raise Failure(f"the example cannot be made: {outcome}")
        with open(bench.path("made.pasc"), "rb") as file:
            shared["bundle"] = file.read()
    bench.write("model.pasc", damage.one_of((damage.bytes, damage.text))(shared["bundle"]))
    samples.write_model(bench)
    return ["generate", "--model", bench.path("model"), "--device", "emulator", "--bundle", bench.path("model.pasc"), "-p", "x",
            "-n", "1", "--context", "64", "--any-device", *toys], None


def weights(bench, damage):
    samples.write_model(bench)
    bench.write("model/model.safetensors", damage.safetensors(bench.settings.shared["weights"]))
    return model_words(bench, "generate", "-p", "hello", "-n", "2"), None


def reference(bench, damage):
    samples.write_model(bench)
    whole = samples.safetensors({"logits": [6, 752]}, ids=[1, 5, 9, 200, 3, 7])
    bench.write("reference.safetensors", damage.safetensors(whole))
    return model_words(bench, "validate", "--tolerance", "1000", "--reference", bench.path("reference.safetensors")), None


def of_model(name):
    """A JSON file of a model's folder."""
    def make(bench, damage):
        folder = samples.write_model(bench)
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            document = json.load(file)
        bench.write(f"model/{name}", damage.json(document))
        if name == "tokenizer.json":
            return model_words(bench, "tokenize"), b"Hello world\n<|im_start|>x\n"
        bench.write("image.png", samples.png())
        speak = model_words(bench, "generate", "-p", "hello", "-n", "2", "--image", bench.path("image.png"))
        if name == "config.json":
            return damage.one_of((speak, model_words(bench, "bench-model", "--random-weights", "--prompt-tokens", "4",
                                                     "--repeats", "1", "--no-image"))), None
        return speak, None
    return make


def image(bench, damage):
    samples.write_model(bench)
    bench.write("image", damage.bytes(damage.one_of((samples.png, samples.jpeg))()))
    return model_words(bench, "generate", "-p", "what", "-n", "1", "--image", bench.path("image")), None


def space(bench, damage):
    toys = samples.write_toy(bench)
    bench.write("toys/toy.json", damage.json(samples.toy_space()))
    return damage.one_of([["compile", *toys, "--kernel", "toy", "--arch", "emulator", "--limit", "2"],
                          ["check", *toys, "--kernel", "toy", "--limit", "1"],
                          ["rank", *toys, "--kernel", "toy", "--arch", "sm_61"],
                          ["sweep", *toys, "--kernel", "toy", "--device", "emulator", "--db", bench.path("new.db"), "--trials",
                           "2", "--warm-cache", "--max-samples", "10", "--rounds", "2"]]), None


def workload(bench, damage):
    own = samples.swept_database(bench)
    bench.write("work.json", damage.json(samples.WORKLOAD))
    toys = samples.write_toy(bench)
    return damage.one_of([["report", "--workload", bench.path("work.json"), "--db", own, "-f", "json", "-o", bench.path("report.out"), "--spaces", bench.path("toys")],
                          ["sweep", "--workload", bench.path("work.json"), "--device", "emulator", "--db", bench.path("new.db"),
                           "--trials", "1", "--budget", "1s", "--warm-cache", "--max-samples", "10", *toys],
                          ["bundle", "--untuned", "--workload", bench.path("work.json"), "--arch", "emulator", *toys, "-o",
                           bench.path("made.pasc")]]), None


def sensors(bench, damage):
    path = bench.write("trace.json", damage.json(samples.SENSOR_TRACE))
    return samples.short_sweep(bench, bench.path("new.db"), ["--trials", "1", "--sensors", path, "--drift", "0.9",
                                                             "--pause-limit", "1", "--preheat", "0"]), None


def table(bench, damage):
    path = bench.write("results.csv", damage.text(samples.TABLE.encode()))
    return damage.one_of([["import", path, "--db", bench.path("new.db")],
                          ["import", path, "--db", bench.path("new.db"), "--dry-run"],
                          ["replay", path, "--repeats", "1", "--no-score", "-s", "random"]]), None


KINDS = {"database": database, "bundle": bundle, "safetensors": weights, "reference": reference,
         "config": of_model("config.json"), "preprocessor": of_model("preprocessor_config.json"),
         "generation": of_model("generation_config.json"), "template": of_model("chat_template.json"),
         "tokenizer": of_model("tokenizer.json"), "image": image, "space": space, "workload": workload,
         "sensors": sensors, "table": table}


class Files:
    """A case: one damaged file, read by one command."""

    name = "files"
    title = "damaged files"
    counts = {"short": 42, "long": 5000}

    def prepare(self, bench):
        """Every example must be read while it is whole, or damage would be tried on nothing."""
        for kind, make in KINDS.items():
            words, data = make(bench, Whole())
            outcome = bench.run(words, data=data)
            if outcome.code != 0:
                raise Failure(f"{kind}: the whole example is refused: {outcome}")

    def case(self, bench, random, tally):
        kind = random.choice(list(KINDS))
        words, data = KINDS[kind](bench, Damage(random))
        tally(kind, 1)
        try:
            bench.expect_clean(bench.run(words, data=data))
            bench.expect_nobody_left()
        except Failure as failure:
            raise Failure(f"{kind}: {failure}") from failure
