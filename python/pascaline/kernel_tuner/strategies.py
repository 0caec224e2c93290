"""Names of Kernel Tuner's strategies, which `tune_kernel` takes as `strategy`: `strategies.minimize` is "minimize"."""

KNOWN = ("brute_force", "random_sample", "minimize", "basinhopping", "diff_evo", "genetic_algorithm", "greedy_mls",
         "ordered_greedy_mls", "greedy_ils",
         "dual_annealing", "mls", "pso", "simulated_annealing", "skopt", "firefly_algorithm", "bayes_opt", "pyatf_strategies",
         "hybrid_vndx",
         "adaptive_tabu_greywolf", "nsga2", "nsga3")


def __getattr__(name: str) -> str:
    if name in KNOWN:
        return name
    raise AttributeError(f"the strategy '{name}' is unknown; known are {', '.join(KNOWN)}")
