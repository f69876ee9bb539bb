/**
 * `npm run errors` writes the table of errors (`src/domain/errors.ts`) into docs/api/errors.md, from the compiled
 * sources; a test checks it.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from './build.mjs';
import { withTable } from './settings.mjs';

/** What docs/api/errors.md says of a repetition. A number is the seconds of `Retry-After`. */
const TRY_AGAIN = {
  kept: 'no, a key keeps the answer',
  open: 'once its cause is gone',
  faulty: 'no, change the request',
  unknown: 'yes',
};

/** The table of docs/api/errors.md. @param errors `ERRORS` of `src/domain/errors.ts` */
export function errorsTable(errors) {
  return [
    '| Code | Status | error | Try again |',
    '|---|---|---|---|',
    ...Object.entries(errors).map(([code, [status, message, repeat]]) => {
      const text = message === '' ? 'says what is wrong' : `\`${message}\``;
      return `| \`${code}\` | ${status} | ${text} | ${TRY_AGAIN[repeat] ?? 'after `Retry-After`'} |`;
    }),
  ];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { ERRORS } = await import(join(root, 'dist/src/domain/errors.js'));
  const page = join(root, 'docs', 'api', 'errors.md');
  writeFileSync(page, withTable(readFileSync(page, 'utf8'), errorsTable(ERRORS)));
}
