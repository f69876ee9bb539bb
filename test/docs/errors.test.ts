/** docs/api/errors.md lists every code, with what the service does about it. */
import { readFileSync } from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ERRORS } from '../../src/domain/errors.js';
import { DECLINE_CODES } from '../../src/domain/purchase/declineCodes.js';

const ROOT = new URL('../../../', import.meta.url);
const test = suite('docs: errors');

test('docs/api/errors.md has a row for each error, and no other (npm run errors writes them)', async () => {
  const { errorsTable } = (await import(new URL('scripts/errors.mjs', ROOT).href)) as {
    errorsTable(errors: typeof ERRORS): string[];
  };
  const { withTable } = (await import(new URL('scripts/settings.mjs', ROOT).href)) as {
    withTable(page: string, table: string[]): string;
  };
  const page = readFileSync(new URL('docs/api/errors.md', ROOT), 'utf8');
  const table = errorsTable(ERRORS);
  assert.ok(Object.keys(ERRORS).every((code) => table.some((line) => line.startsWith(`| \`${code}\` |`))));
  assert.equal(withTable(page, table), page);
});

test('docs/api/purchases.md has a row for each decline code, and no other', () => {
  const page = readFileSync(new URL('docs/api/purchases.md', ROOT), 'utf8');
  const [, section = ''] = page.split('### Decline codes');
  const rows = [...section.split('###')[0]!.matchAll(/^\| `(\w+)` \| (.+) \|$/gm)].map(([, code, advice]) => [
    code,
    advice,
  ]);
  assert.equal(Object.fromEntries(rows), DECLINE_CODES);
});

test.run();
