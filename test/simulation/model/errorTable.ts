/** The table of errors of docs/api/errors.md, read from that page: it is the contract. */
import { readFileSync } from 'node:fs';

/** One kind of error. */
export interface ErrorRow {
  readonly status: number;
  /** `undefined` where the message says what is wrong. */
  readonly message: string | undefined;
  /** Whether an idempotency key keeps it. */
  readonly kept: boolean;
}

const ROW = /^\| `([a-z_]+)` \| (\d{3}) \| (.+?) \| ([^|]+) \|$/;

/** Errors by their `Error-Code`. @throws Error where the page has no such table */
export function errorTable(page: string): ReadonlyMap<string, ErrorRow> {
  const rows = page.split('\n').flatMap((line): [string, ErrorRow][] => {
    const [, code, status, message = '', again = ''] = ROW.exec(line) ?? [];
    if (code === undefined) return [];
    const exact = /^`(.*)`$/.exec(message)?.[1];
    return [[code, { status: Number(status), message: exact, kept: again.includes('a key keeps the answer') }]];
  });
  if (rows.length === 0) throw new Error('docs/api/errors.md has no table of codes');
  return new Map(rows);
}

export const ERRORS = errorTable(readFileSync(new URL('../../../../docs/api/errors.md', import.meta.url), 'utf8'));
