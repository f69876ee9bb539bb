/** Reads an environment variable; `undefined`: absent or empty. */
export type ReadText = (name: string) => string | undefined;

/** Parses a variable's text. `fault` takes a message that follows the variable's name, never with a secret's value. */
export type Kind<T> = (text: string, fault: (problem: string) => void) => T | undefined;

interface Setting<T, D extends T | undefined = T | undefined> {
  readonly name: string;
  readonly kind: Kind<T>;
  /** Value of an absent variable; `undefined`: the setting is optional. */
  readonly fallback: D;
  /** Condition as text (`PAYMENTS is stripe`); where it holds, an absent variable is a fault. */
  readonly requiredWhere?: string;
  /** Texts about the setting in `docs/settings.md`, which links are relative to, and `.env.example`. */
  readonly shown: { readonly fallback: string; readonly meaning: string };
}

type Settings = Readonly<Record<string, Setting<unknown>>>;

type Always<S extends Settings> = { [K in keyof S]: undefined extends S[K]['fallback'] ? never : K }[keyof S];
type ValueOf<S> = S extends Setting<infer T> ? T : never;

export type Values<S extends Settings> = { readonly [K in Always<S>]: ValueOf<S[K]> } & {
  readonly [K in Exclude<keyof S, Always<S>>]?: ValueOf<S[K]>;
};

/** @param shown text about the default, where its value says too little */
export function setting<T>(name: string, kind: Kind<T>, fallback: T, meaning: string, shown?: string): Setting<T, T> {
  return { name, kind, fallback, shown: { fallback: shown ?? String(fallback), meaning } };
}

export function optional<T>(name: string, kind: Kind<T>, meaning: string, shown = 'none'): Setting<T, undefined> {
  return { name, kind, fallback: undefined, shown: { fallback: shown, meaning } };
}

export function required(name: string, kind: Kind<string>, where: string, meaning: string): Setting<string, string> {
  return {
    name,
    kind,
    fallback: '',
    requiredWhere: where,
    shown: { fallback: `required where ${where}`, meaning },
  };
}

/** Reads all settings of a table. Every fault is added to `faults`, and the default is used instead of its value. */
export function readSettings<S extends Settings>(table: S, text: ReadText, faults: string[]): Values<S> {
  const values: Record<string, unknown> = {};
  for (const [key, { name, kind, fallback, requiredWhere }] of Object.entries(table)) {
    const given = text(name);
    if (given === undefined && requiredWhere !== undefined) faults.push(`${name} is required where ${requiredWhere}`);
    const value = given === undefined ? undefined : kind(given, (problem) => faults.push(`${name} ${problem}`));
    if ((value ?? fallback) !== undefined) values[key] = value ?? fallback;
  }
  return values as Values<S>;
}

export const anyText: Kind<string> = (text) => text;

export function wholeNumber(min: number, max: number): Kind<number> {
  return (text, fault) => {
    const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (number >= min && number <= max) return number;
    fault(`must be a whole number from ${min} to ${max}, not ${JSON.stringify(text)}`);
    return undefined;
  };
}

export function oneOf<T extends string>(allowed: readonly T[]): Kind<T> {
  return (text, fault) => {
    const found = allowed.find((word) => word === text);
    if (found === undefined) fault(`must be one of ${allowed.join(', ')}, not ${JSON.stringify(text)}`);
    return found;
  };
}

/** The kind of texts that match a pattern. `description`: of the pattern, for faults, which never show the value. */
export function matching(pattern: RegExp, description: string): Kind<string> {
  return (text, fault) => {
    if (!pattern.test(text)) fault(`must be ${description}`);
    return text;
  };
}

export const partsOf = (text: string): string[] => text.split(',').map((part) => part.trim());

/** The address; `undefined` unless the text is an http or https address without query and fragment. */
export function webAddress(text: string): URL | undefined {
  // The text itself becomes the start of links: it must have what a URL's parser would put right or leave out.
  return /^https?:\/\/[^\s?#/\\][^\s?#\\]*$/i.test(text) && URL.canParse(text) ? new URL(text) : undefined;
}
