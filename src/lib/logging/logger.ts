/**
 * The structured log: one JSON object a line, with no secret, no body and no whole gift id in it, whatever is handed
 * over.
 */
import pino, { type DestinationStream, type Logger, type LoggerOptions } from 'pino';
import { shortened } from '../quotedText.js';
import { currentTime } from '../clock.js';
import { openLogDestination } from './destination.js';

/** How much of a gift's id or shortcode may be seen. */
const SEEN = 6;
/** What is nested deeper is left out: it is a body, or a mistake. */
const DEPTH = 4;
/** Longer texts and lists are cut: a log line is read by people. */
const MAX_TEXT = 2_000;
const MAX_LIST = 50;

const CUT = '[redacted]';

/** Keys whose values are secret or personal wherever they stand, in lower case without `_` and `-`. */
const SECRET = new Set([
  'authorization',
  'cookie',
  'setcookie',
  'password',
  'passwordhash',
  'secret',
  'secrethash',
  'clientsecret',
  'token',
  'accesstoken',
  'refreshtoken',
  'devicetoken',
  'devicetokens',
  'tokenkey',
  'tokenkeys',
  'hashkey',
  'key',
  'idempotencykey',
  'seed',
  'pin',
  'voucher',
  'vouchercode',
  'phonenumber',
  'phone',
  'username',
  'message',
  'body',
  'requestbody',
  'responsebody',
]);
/** Keys whose values are, or hold, gift ids and shortcodes. */
const CARRIES_GIFT_IDS = new Set([
  'path',
  'url',
  'stream',
  'giftid',
  'shortcode',
  'giftids',
  'gifts',
  'documentid',
  'entity',
]);

/** In a path a caller may have spelled a shortcode in small letters. */
const GIFT_ID = /(?<![0-9A-Za-z])(?:[0-9a-f]{20}|[0-9A-Za-z]{16})(?![0-9A-Za-z])/g;
/** In prose small letters are words. */
const GIFT_ID_IN_TEXT = /(?<![0-9A-Za-z])(?:[0-9a-f]{20}|[0-9A-HJKMNP-TV-Z]{16})(?![0-9A-Za-z])/g;

/** What a logger needs to know. */
export interface LoggerSettings {
  /** The lowest level that is written, in pino's words. */
  readonly level: string;
  /** Where lines go; the process's standard output, buffered, when absent. */
  readonly destination?: DestinationStream;
}

/**
 * A path, stream name or text with every gift id and shortcode in it cut to its first 6 characters, and without its
 * query: who holds a whole one may look the gift up.
 */
export function cutGiftIds(path: string): string {
  const query = path.indexOf('?');
  const bare = query < 0 ? path : path.slice(0, query);
  return decoded(bare).replace(GIFT_ID, cut);
}

const cut = (id: string): string => `${id.slice(0, SEEN)}…`;

function decoded(path: string): string {
  if (!path.includes('%')) return path;
  try {
    return decodeURIComponent(path);
  } catch {
    return path; // nothing that a router would have understood either
  }
}

/** What a line may show of the values under a key. */
type Treatment = 'shown' | 'cut' | 'gift ids';

const treatments = new Map<string, Treatment>();

/** By a key without regard to its spelling. Keys are written by us, so there are few, and each is looked at once. */
function treatmentOf(key: string): Treatment {
  const known = treatments.get(key);
  if (known !== undefined) return known;
  const plain = key.replaceAll(/[_-]/g, '').toLowerCase();
  const made = SECRET.has(plain) ? 'cut' : CARRIES_GIFT_IDS.has(plain) ? 'gift ids' : 'shown';
  if (treatments.size < 1_000) treatments.set(key, made);
  return made;
}

/** What is told of an error: its own fields beside these may hold anything, so they are left out. */
function errorShape(error: Error, depth: number): Record<string, unknown> {
  const code = (error as { code?: unknown }).code;
  return {
    type: error.name,
    message: error.message.replace(GIFT_ID_IN_TEXT, cut),
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    stack: error.stack === undefined ? undefined : error.stack.replace(GIFT_ID_IN_TEXT, cut),
    ...(error.cause === undefined || depth <= 0
      ? {}
      : { cause: error.cause instanceof Error ? errorShape(error.cause, depth - 1) : typeof error.cause }),
  };
}

function cleanValue(treatment: Treatment, value: unknown, depth: number): unknown {
  if (treatment === 'cut') return CUT;
  switch (typeof value) {
    case 'string':
      if (treatment === 'gift ids') return cutGiftIds(value);
      return shortened(value, MAX_TEXT);
    case 'bigint':
      return value.toString();
    case 'object':
      if (value === null || value instanceof Date) return value;
      if (value instanceof Error) return errorShape(value, depth);
      if (depth <= 0 || ArrayBuffer.isView(value)) return '[…]';
      if (Array.isArray(value)) return value.slice(0, MAX_LIST).map((entry) => cleanValue(treatment, entry, depth - 1));
      return clean(value as Record<string, unknown>, depth - 1);
    default:
      return value;
  }
}

/**
 * The object without what a log must not hold; the very object where it holds nothing of the kind, as an access line
 * does.
 */
function clean(object: Record<string, unknown>, depth: number = DEPTH): Record<string, unknown> {
  let result: Record<string, unknown> | undefined;
  for (const key of Object.keys(object)) {
    const value = object[key];
    const shown = cleanValue(treatmentOf(key), value, depth);
    if (shown === value) continue;
    result ??= { ...object };
    result[key] = shown;
  }
  return result ?? object;
}

/**
 * Makes the process's logger. Lines are handed to the operating system a few milliseconds later, never while a request
 * waits; `fatal` and the end of the process write at once what is waiting.
 */
export function createLogger(settings: LoggerSettings): Logger {
  const options: LoggerOptions = {
    level: settings.level,
    base: null,
    timestamp: () => `,"time":"${currentTime()}"`,
    formatters: { level: (label) => ({ level: label }), log: (object) => clean(object) },
    // Errors have been made plain by then.
    serializers: { err: (value: unknown) => value },
  };
  const logger = pino(options, settings.destination ?? openLogDestination(1));
  // What a child logger says on every line passes by the formatters.
  const child = Reflect.get(logger, 'child') as unknown as (...given: unknown[]) => Logger;
  Reflect.set(logger, 'child', function cleaned(this: Logger, bindings: Record<string, unknown>, ...rest: unknown[]) {
    return Reflect.apply(child, this, [clean(bindings), ...rest]);
  });
  return logger;
}
