/** The patches of the back-test: each puts one fault back into `src`. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Folder of the patches, in the project's folder. */
export const PATCHES = join('test', 'simulation', 'mutants');

/** All patches in the order of their names, with what is wrong in each: the lines before its first file. */
export function listMutants(root) {
  return readdirSync(join(root, PATCHES))
    .filter((name) => name.endsWith('.patch'))
    .sort()
    .map((name) => {
      const text = readFileSync(join(root, PATCHES, name), 'utf8');
      return { name, what: text.split(/^(?:diff --git|---) /m, 1)[0].trim(), text };
    });
}
