// A page that is served asks its server for newer documents; one opened from disk asks nobody.

const liveInterval = 5000;
const liveAnswer = 10000;
let liveTag = null;

function watchServer(renew) {
  if (!report.live) return;
  sayLive('live');
  const ask = async () => {
    try {
      await takeNewer(renew);
      sayLive('live, last checked at ' + clock(Date.now(), true) + ' UTC');
    } catch (failure) {
      sayLive(failure.answer || 'The server does not answer; this is the last document it sent. Still trying.', true);
    }
    setTimeout(ask, liveInterval);
  };
  setTimeout(ask, liveInterval);
}

async function takeNewer(renew) {
  const answer = await fetch(
      'document.json',
      {cache: 'no-store', headers: liveTag ? {'If-None-Match': liveTag} : {}, signal: AbortSignal.timeout(liveAnswer)});
  if (answer.status === 304) return;
  if (!answer.ok) throw Object.assign(new Error('status ' + answer.status), {answer: (await answer.text()).trim()});
  const next = await answer.json();
  liveTag = answer.headers.get('ETag');
  renew(next);
}

// Only what changes is said, as a screen reader reads the whole each time.
function sayLive(text, gone) {
  const state = document.getElementById('live-state');
  state.setAttribute('aria-live', gone ? 'polite' : 'off');
  state.className = gone ? 'bad' : 'muted';
  if (state.textContent !== text) state.textContent = text;
}
