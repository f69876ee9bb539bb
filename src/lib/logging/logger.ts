/** The structured log: one JSON object per line, never with a secret, a body or a whole gift id. */
import pino, { type DestinationStream, type Logger, type LoggerOptions } from 'pino';
import { shortened } from '../quotedText.js';
import { systemTime } from '../clock.js';
import { openLogDestination } from './destination.js';

const SEEN = 6;
const DEPTH = 4;
const MAX_TEXT = 2_000;
const MAX_LIST = 50;

const CUT = '[redacted]';

/** Keys of secret or personal values, in lower case without `_` and `-`. */
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
/** Keys of values that are or contain gift ids and shortcodes. */
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

/** Gift ids and shortcodes in paths, where shortcodes may be in lower case. */
const GIFT_ID = /(?<![0-9A-Za-z])(?:[0-9a-f]{20}|[0-9A-Za-z]{16})(?![0-9A-Za-z])/g;
/** Gift ids and shortcodes in prose, where 16 letters in lower case are a word. */
const GIFT_ID_IN_TEXT = /(?<![0-9A-Za-z])(?:[0-9a-f]{20}|[0-9A-HJKMNP-TV-Z]{16})(?![0-9A-Za-z])/g;

interface LoggerSettings {
  /** pino's name of the lowest level written. */
  readonly level: string;
  readonly destination?: DestinationStream;
  /** Number of this process among those that share the output, which every line names. */
  readonly processNumber?: number | undefined;
}

/** Cuts gift ids and shortcodes to 6 characters, since a whole one gives access to the gift, and drops the query. */
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
    return path;
  }
}

type Treatment = 'shown' | 'cut' | 'gift ids';

const treatments = new Map<string, Treatment>();

/** The treatment of a key's value, whatever the key's spelling. Cached, since there are few keys. */
function treatmentOf(key: string): Treatment {
  const known = treatments.get(key);
  if (known !== undefined) return known;
  const plain = key.replaceAll(/[_-]/g, '').toLowerCase();
  const made = SECRET.has(plain) ? 'cut' : CARRIES_GIFT_IDS.has(plain) ? 'gift ids' : 'shown';
  if (treatments.size < 1_000) treatments.set(key, made);
  return made;
}

/** The fields of an error that are logged. Its other fields may contain anything, so they are left out. */
function errorShape(error: Error, depth: number): Record<string, unknown> {
  const code = (error as { code?: unknown }).code;
  return {
    type: error.name,
    message: error.message.replace(GIFT_ID_IN_TEXT, cut),
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    stack: error.stack === undefined ? undefined : error.stack.replace(GIFT_ID_IN_TEXT, cut),
    ...(error.cause === undefined || depth <= 0 ? {} : { cause: innerShape(error.cause, depth) }),
    ...(error instanceof AggregateError && depth > 0
      ? { errors: (error.errors as unknown[]).slice(0, MAX_LIST).map((one) => innerShape(one, depth)) }
      : {}),
  };
}

function innerShape(thrown: unknown, depth: number): unknown {
  return thrown instanceof Error ? errorShape(thrown, depth - 1) : typeof thrown;
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

/** Writes lines some milliseconds later, but on `fatal` and at the end of the process at once. */
export function createLogger(settings: LoggerSettings): Logger {
  const options: LoggerOptions = {
    level: settings.level,
    base: settings.processNumber === undefined ? null : { process_number: settings.processNumber },
    timestamp: () => `,"time":"${systemTime()}"`,
    formatters: { level: (label) => ({ level: label }), log: (object) => clean(object) },
    // Errors are already plain objects.
    serializers: { err: (value: unknown) => value },
  };
  const logger = pino(
    options,
    settings.destination ?? openLogDestination(1, { shared: settings.processNumber !== undefined }),
  );
  // Bindings of a child logger bypass the formatters, so they are cleaned here.
  const child = Reflect.get(logger, 'child') as (...given: never[]) => unknown;
  Reflect.set(logger, 'child', function cleaned(this: Logger, bindings: Record<string, unknown>, ...rest: unknown[]) {
    return Reflect.apply(child, this, [clean(bindings), ...rest]);
  });
  return logger;
}
