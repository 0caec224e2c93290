// Light and dark: as the system says, or as the reader chose. Paper is always light.

const themeKey = 'pascaline-report-theme';
const themeChoices = ['auto', 'light', 'dark'];
const darkMedia = matchMedia('(prefers-color-scheme: dark)');
const printMedia = matchMedia('print');
let themeChoice = storedTheme();
let printing = printMedia.matches;

// Storage is refused to some files opened from disk and in private windows: then the choice lasts as long as the page.
function storedTheme() {
  try {
    const stored = localStorage.getItem(themeKey);
    return themeChoices.includes(stored) ? stored : 'auto';
  } catch (refused) {
    return 'auto';
  }
}

function storeTheme() {
  try {
    localStorage.setItem(themeKey, themeChoice);
  } catch (refused) {
    // As above.
  }
}

function theme() {
  if (printing) return 'light';
  if (themeChoice !== 'auto') return themeChoice;
  return darkMedia.matches ? 'dark' : 'light';
}

function applyTheme() {
  document.documentElement.setAttribute('data-theme', theme());
  document.documentElement.toggleAttribute('data-paper', printing);
  const button = document.getElementById('theme');
  button.textContent = 'Theme: ' + themeChoice;
  button.setAttribute('title', 'Colours: as the system says (auto), light or dark');
}

/** Sets the theme up; `renew` draws the page again, as charts do not follow the style by themselves. */
function watchTheme(renew) {
  const change = () => {
    applyTheme();
    renew();
  };
  const print = (now) => {
    if (printing === now) return;
    printing = now;
    change();
  };
  document.getElementById('theme').addEventListener('click', () => {
    themeChoice = themeChoices[(themeChoices.indexOf(themeChoice) + 1) % themeChoices.length];
    storeTheme();
    change();
  });
  darkMedia.addEventListener('change', change);
  printMedia.addEventListener('change', () => print(printMedia.matches));
  addEventListener('beforeprint', () => print(true));
  addEventListener('afterprint', () => print(false));
  applyTheme();
}

/** A colour of the style sheet, by the name of its custom property. */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
}

const seriesCount = 7;

/** The colour of the nth of several things; told apart by shape or dash as well, as colours come again. */
function seriesColour(index) {
  return colour('series-' + (index % seriesCount + 1));
}

/** A colour with some transparency; the style sheet gives colours as #rrggbb. */
function faded(hex, share) {
  return hex + Math.round(share * 255).toString(16).padStart(2, '0');
}

// Cividis (Nuñez, Anderton and Renslow, 2018), made to look alike with and without a colour deficiency.
const heatStops = [[254, 232, 56], [188, 175, 111], [124, 123, 120], [59, 73, 108], [0, 34, 78]];

// The far end would be lost against the page's background.
const heatReach = 0.88;

/** Background and text colour of a share from 0 (fastest) to 1 (slowest): the fastest stands out most from the page. */
function heatColours(share) {
  const reached = Math.min(Math.max(share, 0), 1) * heatReach;
  const at = (theme() === 'dark' ? reached : 1 - reached) * (heatStops.length - 1);
  const below = Math.min(Math.floor(at), heatStops.length - 2);
  const mixed = heatStops[below].map((from, i) => Math.round(from + (heatStops[below + 1][i] - from) * (at - below)));
  const [red, green, blue] =
      mixed.map((value) => (value <= 10 ? value / 3294 : ((value / 255 + 0.055) / 1.055) ** 2.4));
  // Black and white stand out alike from this luminance.
  const luminous = 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179;
  return {background: 'rgb(' + mixed.join(',') + ')', text: luminous ? '#000000' : '#ffffff'};
}
