/** What an answer must be, as far as the contract fixes it, with variables for what the service chooses. */
import type { Answer } from './history.js';

/**
 * JSON, in which an object may lack fields that the contract leaves open (and entries, where it stands for an array), `*` is any value, `!` is none, and a text that begins with
 * `?` is a variable: the first answer that shows it fixes its value.
 */
export type Pattern = string | number | boolean | null | readonly Pattern[] | { readonly [name: string]: Pattern };

export interface Expected {
  readonly status: number;
  readonly body: Pattern;
  /** Headers that must be there with this value, or `*`, or must not be there (null). */
  readonly headers: Readonly<Record<string, string | null>>;
}

/** Values of variables. */
export type Bindings = Readonly<Record<string, string>>;

const isVariable = (pattern: Pattern): pattern is string => typeof pattern === 'string' && pattern.startsWith('?');

/** @returns the variables that the answer fixes; `undefined` where it is another answer */
export function matches(expected: Expected, answer: Answer): Bindings | undefined {
  if (expected.status !== answer.status) return undefined;
  for (const [name, value] of Object.entries(expected.headers)) {
    const actual = answer.headers[name];
    if (value === null ? actual !== undefined : actual === undefined || (value !== '*' && value !== actual))
      return undefined;
  }
  return matchValue(expected.body, answer.body);
}

/** The same for a value. */
export function matchValue(pattern: Pattern, value: unknown): Bindings | undefined {
  const found: Record<string, string> = {};
  return matchesValue(pattern, value, found) ? found : undefined;
}

function matchesValue(pattern: Pattern, value: unknown, found: Record<string, string>): boolean {
  if (pattern === '*') return value !== undefined;
  if (pattern === '!') return value === undefined;
  if (isVariable(pattern)) {
    if (typeof value !== 'string' || value === '') return false;
    const known = (found[pattern] ??= value);
    return known === value;
  }
  if (Array.isArray(pattern))
    return (
      Array.isArray(value) &&
      value.length === pattern.length &&
      pattern.every((one: Pattern, index) => matchesValue(one, value[index], found))
    );
  if (typeof pattern === 'object' && pattern !== null) {
    if (typeof value !== 'object' || value === null) return false;
    const fields = value as Record<string, unknown>;
    return Object.entries(pattern).every(([name, one]) => matchesValue(one, fields[name], found));
  }
  return pattern === value;
}

/** The same state with values in place of variables, wherever they are in it. */
export function bind<T>(state: T, bindings: Bindings): T {
  const names = Object.keys(bindings);
  if (names.length === 0) return state;
  return JSON.parse(JSON.stringify(state), (_name, value: unknown) =>
    typeof value === 'string' && Object.hasOwn(bindings, value) ? bindings[value] : value,
  ) as T;
}

/** An expected answer in one line. */
export function describeExpected({ status, body, headers }: Expected): string {
  const named = Object.entries(headers).map(([name, value]) => (value === null ? `no ${name}` : `${name}: ${value}`));
  return `${status} ${JSON.stringify(body)}${named.length === 0 ? '' : ` [${named.join(', ')}]`}`;
}
