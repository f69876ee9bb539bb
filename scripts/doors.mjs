/**
 * The doors of `src`: places whose files are their own affair. From outside, only a place's `index.ts` is imported, and
 * it shows at most so many names. `npm run lint` and a test hold it (docs/design.md#doors).
 */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from './build.mjs';
import { filesBelow } from './filesBelow.mjs';

export const DOORS = {
  deliveries: 10,
  'processors/runner': 25,
  'runtime/coordination': 20,
  'runtime/personal': 13,
  'runtime/readmodels': 30,
  'ops/diagnosis': 6,
  'ops/evidence': 20,
  'ops/people': 15,
};

const IMPORT = /from '(\.{1,2}\/[^']+)\.js'|import\('(\.{1,2}\/[^']+)\.js'\)/g;
const EXPORT = /^export (?:type )?\{([^}]*)\} from '[^']+';$/gm;

/** Names that an `index.ts` shows. @throws Error where it has anything but lists of names */
export function namesShown(text) {
  const lists = [...text.matchAll(EXPORT)].map(([, names]) => names);
  const rest = text.replace(EXPORT, '').replace(/^\/\*\*[\s\S]*?\*\/$/gm, '');
  if (rest.trim() !== '') throw new Error(`more than lists of names: ${rest.trim()}`);
  return lists.flatMap((names) => names.split(',').flatMap((name) => name.trim() || []));
}

/** What does not hold of the doors, a line each. */
export function doorFaults() {
  const src = join(root, 'src');
  const faults = [];
  for (const [place, most] of Object.entries(DOORS)) {
    const { length } = namesShown(readFileSync(join(src, place, 'index.ts'), 'utf8'));
    if (length > most)
      faults.push(`src/${place}/index.ts shows ${length} names, and may show ${most} (scripts/doors.mjs)`);
  }
  for (const file of filesBelow(src).filter((one) => one.endsWith('.ts')))
    for (const [, one, other] of readFileSync(join(src, file), 'utf8').matchAll(IMPORT)) {
      const imported = join(dirname(file), one ?? other);
      const inside = (place) => imported.startsWith(`${place}/`) && imported !== `${place}/index`;
      const place = Object.keys(DOORS).find((door) => inside(door) && !file.startsWith(`${door}/`));
      if (place !== undefined) faults.push(`src/${file} imports src/${imported}.ts: import src/${place}/index.ts`);
    }
  return faults;
}
