/**
 * Reads a body and checks its type (415), size (413) and syntax (400), in this order
 * (docs/api/conventions.md#order-of-checks). The bytes are read by raw-body. koa-bodyparser, which uses it too, would
 * parse them before they can be checked.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ParsedUrlQuery } from 'node:querystring';
import { MIMEType, promisify } from 'node:util';
import { brotliDecompress, unzip } from 'node:zlib';
import type { Context } from 'koa';
import getRawBody from 'raw-body';
import { shortened } from '../../lib/quotedText.js';
import { repeatedNames } from '../../lib/repeatedNames.js';
import { announcesBody, askForBody } from './askForBody.js';
import { type BodyLimits, LEAST_BODY } from './bodyLimits.js';
import { CallerLeftError } from './callerLeft.js';
import { refuseCostlyJson } from './costlyJson.js';
import { HttpError, faultOf } from './errors.js';
import { parseParameters, refuseMalformedParameters } from './query.js';

const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded';

type Decompress = (bytes: Buffer, options: { readonly maxOutputLength: number }) => Promise<Buffer>;
const unzipped: Decompress = promisify(unzip);
/** Decompressors by content coding; `x-gzip` is `gzip` (RFC 9110 8.4.1). */
const CODINGS: ReadonlyMap<string, Decompress> = new Map([
  ['gzip', unzipped],
  ['x-gzip', unzipped],
  ['deflate', unzipped],
  ['br', promisify(brotliDecompress)],
]);

interface BodyRules {
  readonly limits: BodyLimits;
  readonly optional: boolean;
  /** The known fields of a form. Absent: forms are refused. */
  readonly formFields?: readonly string[] | undefined;
  /** Whether compressed bodies are accepted (`Content-Encoding`). */
  readonly coded: boolean;
}

/**
 * The body as any JSON value; `undefined` where the body is optional and absent.
 * @throws HttpError `unsupported_content_type`, `request_too_large`, `malformed_json`, `schema` (a form that is no
 * Unicode text, a repeated field of a form, a repeated name in one object); CallerLeftError
 */
export async function readBody({ req, res }: Context, rules: BodyRules): Promise<unknown> {
  const { limits, optional, formFields, coded } = rules;
  if (optional && (!announcesBody(req) || (await isEmpty(req, res)))) return undefined;
  const type = typeOf(req);
  if (type !== JSON_TYPE && (formFields === undefined || type !== FORM_TYPE))
    throw unsupportedType(req, formFields === undefined ? [JSON_TYPE] : [JSON_TYPE, FORM_TYPE]);
  const decompress = decompressorOf(req, coded);
  const bytes =
    decompress === undefined
      ? await bytesOf(req, res, limits.bytes)
      : await decompressed(await bytesOf(req, res, compressedLimit(limits)), decompress, limits);
  if (type === FORM_TYPE) return readForm(textOf(bytes), formFields ?? []);
  refuseCostlyJson(bytes, limits.marks);
  return readJson(textOf(bytes));
}

/** @throws HttpError `malformed_json`, `schema` */
function readJson(text: string): unknown {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw new HttpError('malformed_json');
  }
  // Parsers differ in which of two values under one name they take (RFC 7493 2.3).
  const [repeated] = repeatedNames(text, 1);
  if (repeated !== undefined) throw faultOf(shortened(repeated.path), 'must be given only once');
  return body;
}

/**
 * Forms are flat (RFC 6749 B). Unknown fields are ignored, however often they are there; known ones must be given once,
 * also without a value (RFC 6749 3.2).
 */
function readForm(text: string, fields: readonly string[]): ParsedUrlQuery {
  refuseMalformedParameters(text);
  const form = parseParameters(text);
  const repeated = fields.find((name) => Array.isArray(form[name]));
  if (repeated !== undefined) throw faultOf(repeated, 'must be given only once');
  return form;
}

/**
 * The body's raw bytes, which a signature covers. Empty without a body.
 * @throws HttpError `unsupported_content_type` (compressed), `request_too_large`; CallerLeftError
 */
export async function readBytes({ req, res }: Context, limit = LEAST_BODY.bytes): Promise<Buffer> {
  decompressorOf(req, false);
  return bytesOf(req, res, limit);
}

/** The error to throw for each error type of raw-body. */
const REFUSALS: Readonly<Record<string, () => Error>> = {
  'entity.too.large': () => new HttpError('request_too_large'),
  'request.aborted': () => new CallerLeftError(),
  'stream.not.readable': () => new CallerLeftError(),
};

async function bytesOf(req: IncomingMessage, res: ServerResponse, limit: number): Promise<Buffer> {
  // A body whose announced length is too large is refused before any of it is read.
  if (Number(req.headers['content-length'] ?? 0) > limit) throw new HttpError('request_too_large');
  askForBody(req, res);
  try {
    return await getRawBody(req, { limit });
  } catch (error) {
    // Discards the rest, which would block the connection's next request.
    req.resume();
    if (req.errored !== null) throw new CallerLeftError();
    throw REFUSALS[(error as { readonly type?: string }).type ?? '']?.() ?? error;
  }
}

/**
 * Most bytes of a compressed body. A body that a route accepts shrinks to less than a quarter, and reading
 * decompression tables is slow for their size.
 */
const compressedLimit = ({ bytes }: BodyLimits): number => Math.max(LEAST_BODY.bytes, bytes / 4);

async function decompressed(bytes: Buffer, decompress: Decompress, limits: BodyLimits): Promise<Buffer> {
  try {
    return await decompress(bytes, { maxOutputLength: limits.bytes });
  } catch (error) {
    const tooLarge = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
    throw new HttpError(tooLarge ? 'request_too_large' : 'malformed_json');
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Decodes UTF-8 and drops a byte order mark. @throws HttpError `malformed_json` for invalid UTF-8 */
function textOf(bytes: Buffer): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new HttpError('malformed_json');
  }
}

/** Whether a body without a length has no bytes. @throws CallerLeftError */
async function isEmpty(request: IncomingMessage, response: ServerResponse): Promise<boolean> {
  if (request.headers['content-length'] !== undefined) return false;
  askForBody(request, response);
  return new Promise((resolve, reject) => {
    const tryRead = (): void => {
      const first = request.read() as Buffer | null;
      if (first === null) return;
      request.off('readable', tryRead).off('end', none).off('error', broken);
      request.unshift(first);
      resolve(false);
    };
    const none = (): void => resolve(true);
    const broken = (): void => reject(new CallerLeftError());
    request.on('readable', tryRead).once('end', none).once('error', broken);
  });
}

/**
 * The media type in lower case; empty without a type, for a malformed type, and for a charset other than UTF-8.
 * Parameters may be empty and have tabs around them (RFC 9110 5.6.6).
 */
function typeOf({ headers }: IncomingMessage): string {
  // The header that most callers send needs no parser.
  if (headers['content-type'] === JSON_TYPE) return JSON_TYPE;
  let media: MIMEType;
  try {
    media = new MIMEType(headers['content-type'] ?? '');
  } catch {
    return '';
  }
  const charset = (media.params.get('charset') ?? 'utf-8').toLowerCase();
  return charset === 'utf-8' || charset === 'utf8' ? media.essence : '';
}

/** A 415 error whose header names the accepted types (RFC 9110 12.5.1, RFC 5789 3.1). */
function unsupportedType({ method }: IncomingMessage, types: readonly string[]): HttpError {
  return new HttpError('unsupported_content_type', {
    headers: { [method === 'PATCH' ? 'Accept-Patch' : 'Accept']: types.join(', ') },
  });
}

/**
 * Decompressor of the body; `undefined`: the body is not compressed. Codings are case-insensitive (RFC 9110 8.4.1).
 * @throws HttpError `unsupported_content_type` naming the known codings (RFC 9110 12.5.3)
 */
function decompressorOf({ headers }: IncomingMessage, coded: boolean): Decompress | undefined {
  const coding = headers['content-encoding']?.toLowerCase() ?? '';
  if (coding === '' || coding === 'identity') return undefined;
  const decompress = coded ? CODINGS.get(coding) : undefined;
  if (decompress === undefined)
    throw new HttpError('unsupported_content_type', {
      headers: { 'Accept-Encoding': coded ? [...CODINGS.keys()].join(', ') : 'identity' },
    });
  return decompress;
}
