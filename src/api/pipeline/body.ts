/**
 * Checks a body's type (415), size (413) and syntax (400), in this order (docs/decisions.md#order-of-checks). Adds to
 * koa-bodyparser what it lacks.
 */
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ParsedUrlQuery } from 'node:querystring';
import { Readable } from 'node:stream';
import { MIMEType, promisify } from 'node:util';
import { brotliDecompress, unzip } from 'node:zlib';
import type { Context } from 'koa';
import bodyParser from 'koa-bodyparser';
import { shortened } from '../../lib/quotedText.js';
import { repeatedNames } from '../../import/repeatedNames.js';
import { announcesBody, askForBody } from './askForBody.js';
import { CallerLeftError } from './callerLeft.js';
import { HttpError, faultOf } from './errors.js';
import { parseParameters, refuseMalformedParameters } from './query.js';

/** Before and after decompression. */
const LIMIT_BYTES = 1_048_576;
const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded';

/** Replaces invalid UTF-8; a text may also contain this character itself. */
const REPLACEMENT = '\ufffd';

type Decompress = (bytes: Buffer, options: { readonly maxOutputLength: number }) => Promise<Buffer>;
const unzipped: Decompress = promisify(unzip);
/** By content coding; `x-gzip` is `gzip` (RFC 9110 8.4.1). `undefined`: not compressed. */
const CODINGS: ReadonlyMap<string, Decompress | undefined> = new Map([
  ['', undefined],
  ['identity', undefined],
  ['gzip', unzipped],
  ['x-gzip', unzipped],
  ['deflate', unzipped],
  ['br', promisify(brotliDecompress)],
]);

const ofCoBody = {
  // Accepts every JSON value, and any field, `__proto__` too: the schema refuses them.
  strict: false,
  onProtoPoisoning: 'ignore',
  // Forms are flat (RFC 6749 B).
  qs: { parse: (text: string) => parseParameters(text) },
};
const limits = { jsonLimit: String(LIMIT_BYTES), formLimit: String(LIMIT_BYTES), textLimit: String(LIMIT_BYTES) };
// Without its own look at the type, which `typeOf` has checked.
const parseJson = bodyParser({ ...ofCoBody, ...limits, enableTypes: ['json'], detectJSON: () => true });
const parseFormFields = bodyParser({ ...ofCoBody, ...limits, enableTypes: ['form'] });
const asBytes = { encoding: null };
const readAsBytes = bodyParser({ ...asBytes, ...limits, enableTypes: ['text'] });

export interface BodyRules {
  readonly optional: boolean;
  /** The known fields of a form. Absent: forms are refused. */
  readonly formFields?: readonly string[] | undefined;
}

/**
 * Any JSON value; `undefined` where the body is optional and absent.
 * @throws HttpError `unsupported_content_type`, `request_too_large`, `malformed_json`, `schema` (a form that is no
 * Unicode text, a repeated field of a form, a repeated name in one object); CallerLeftError
 */
export async function readBody({ req, res }: Context, rules: BodyRules): Promise<unknown> {
  if (rules.optional && (!announcesBody(req) || (await isEmpty(req, res)))) return undefined;
  const type = typeOf(req);
  if (type !== JSON_TYPE && (rules.formFields === undefined || type !== FORM_TYPE))
    throw new HttpError('unsupported_content_type');
  const { text, body } = await parsed(req, res, type);
  if (type === FORM_TYPE) {
    refuseMalformedParameters(text);
    refuseRepeated(rules.formFields ?? [], body as ParsedUrlQuery);
    return body;
  }
  if (text === '') throw new HttpError('malformed_json');
  // Parsers differ in which of two values under one name they take (RFC 7493 2.3).
  const [repeated] = repeatedNames(text, 1);
  if (repeated !== undefined) throw faultOf(shortened(repeated.place), 'must be given only once');
  return body;
}

/** Also without a value. Unknown fields are ignored, however often they stand there (RFC 6749 3.2). */
function refuseRepeated(fields: readonly string[], form: ParsedUrlQuery): void {
  const repeated = fields.find((name) => Array.isArray(form[name]));
  if (repeated !== undefined) throw faultOf(repeated, 'must be given only once');
}

/**
 * The body's raw bytes, which a signature covers. Empty without a body.
 * @throws HttpError `unsupported_content_type` (compressed), `request_too_large`; CallerLeftError
 */
export async function readBytes({ req, res }: Context): Promise<Buffer> {
  if (takeDecompressor(req) !== undefined) throw new HttpError('unsupported_content_type');
  return bytesOf(req, res);
}

interface Parsed {
  readonly text: string;
  readonly body: unknown;
}

async function parsed(req: IncomingMessage, res: ServerResponse, type: string): Promise<Parsed> {
  const decompress = takeDecompressor(req);
  const parser = type === FORM_TYPE ? parseFormFields : parseJson;
  if (decompress !== undefined) {
    const bytes = await decompressed(await bytesOf(req, res), decompress);
    const read = await readWith(parser, Object.assign(Readable.from(bytes), { headers: {} }), type);
    return asText(read, [bytes]);
  }
  refuseLongBody(req);
  askForBody(req, res);
  // Gets the same chunks as the parser, which also starts to listen in this turn.
  const chunks: Buffer[] = [];
  const keep = (chunk: Buffer): void => void chunks.push(chunk);
  req.on('data', keep);
  try {
    return asText(await readWith(parser, req, type), chunks);
  } finally {
    req.off('data', keep);
  }
}

/** koa-bodyparser replaces invalid UTF-8. @throws HttpError `malformed_json` where it did */
function asText({ rawBody, body }: Read, bytes: readonly Buffer[]): Parsed {
  const text = rawBody as string;
  if (text.includes(REPLACEMENT) && !isUtf8(Buffer.concat(bytes))) throw new HttpError('malformed_json');
  return { text, body };
}

async function bytesOf(req: IncomingMessage, res: ServerResponse): Promise<Buffer> {
  refuseLongBody(req);
  askForBody(req, res);
  // koa-bodyparser returns '' for no bytes.
  const { body } = await readWith(readAsBytes, req, 'text/plain');
  return Buffer.isBuffer(body) ? body : Buffer.alloc(0);
}

async function decompressed(bytes: Buffer, decompress: Decompress): Promise<Buffer> {
  try {
    return await decompress(bytes, { maxOutputLength: LIMIT_BYTES });
  } catch (error) {
    const tooLarge = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
    throw new HttpError(tooLarge ? 'request_too_large' : 'malformed_json');
  }
}

/** By the errors of raw-body, below co-body; other errors are syntax errors. */
const REFUSALS: Readonly<Record<string, () => Error>> = {
  'entity.too.large': () => new HttpError('request_too_large'),
  'request.aborted': () => new CallerLeftError(),
  'stream.not.readable': () => new CallerLeftError(),
};

interface Read {
  readonly body: unknown;
  readonly rawBody: unknown;
}

/** Runs a koa-bodyparser on a stream of this type, whatever the request's own headers say. */
async function readWith(parser: ReturnType<typeof bodyParser>, source: Readable, type: string): Promise<Read> {
  const request = {
    body: undefined,
    rawBody: undefined,
    get: () => type,
    is: (types: readonly string[]) => types.includes(type),
  };
  try {
    await parser({ req: source, request } as unknown as Context, async () => undefined);
  } catch (error) {
    // Discards the rest, which would block the connection's next request.
    source.resume();
    if (source.errored !== null) throw new CallerLeftError();
    throw REFUSALS[(error as { readonly type?: string }).type ?? '']?.() ?? new HttpError('malformed_json');
  }
  return request;
}

/** Before any of the body is read. @throws HttpError `request_too_large` */
function refuseLongBody({ headers }: IncomingMessage): void {
  if (Number(headers['content-length'] ?? 0) > LIMIT_BYTES) throw new HttpError('request_too_large');
}

/** Whether a body without a length has no bytes. @throws CallerLeftError */
async function isEmpty(request: IncomingMessage, response: ServerResponse): Promise<boolean> {
  if (request.headers['content-length'] !== undefined) return false;
  askForBody(request, response);
  return new Promise((resolve, reject) => {
    const look = (): void => {
      const first = request.read() as Buffer | null;
      if (first === null) return;
      request.off('readable', look).off('end', none).off('error', broken);
      request.unshift(first);
      resolve(false);
    };
    const none = (): void => resolve(true);
    const broken = (): void => reject(new CallerLeftError());
    request.on('readable', look).once('end', none).once('error', broken);
  });
}

/**
 * In lower case. Parameters may be empty and have tabs around them (RFC 9110 5.6.6).
 * @throws HttpError `unsupported_content_type`, also for a charset other than UTF-8
 */
function typeOf({ headers }: IncomingMessage): string {
  // What most callers send needs no parser.
  if (headers['content-type'] === JSON_TYPE) return JSON_TYPE;
  let media: MIMEType;
  try {
    media = new MIMEType(headers['content-type'] ?? '');
  } catch {
    throw new HttpError('unsupported_content_type');
  }
  const charset = (media.params.get('charset') ?? 'utf-8').toLowerCase();
  if (charset !== 'utf-8' && charset !== 'utf8') throw new HttpError('unsupported_content_type');
  return media.essence;
}

/**
 * Takes the coding off the request: koa-bodyparser would bound only the decompressed size.
 * @throws HttpError `unsupported_content_type` for an unknown coding
 */
function takeDecompressor({ headers }: IncomingMessage): Decompress | undefined {
  // Codings are case-insensitive (RFC 9110 8.4.1).
  const coding = (headers['content-encoding'] ?? '').toLowerCase();
  if (!CODINGS.has(coding)) throw new HttpError('unsupported_content_type');
  headers['content-encoding'] = 'identity';
  return CODINGS.get(coding);
}
