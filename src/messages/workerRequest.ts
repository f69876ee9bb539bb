import { Ajv, type Schema, type ValidateFunction } from 'ajv';
import { OWN_SCHEMAS } from '../lib/schemaOptions.js';
import type { WorkerFailure } from './workerFailure.js';

export interface WorkerRequest<Q extends object, R extends object> {
  readonly subject: string;
  /** Name of the queue group, of which one worker gets the request. */
  readonly queue: string;
  readonly request: Check<Q>;
  readonly reply: Check<R | WorkerFailure>;
}

/** A request that each worker answers at once: requests to providers would be served. */
export const WORKERS_ALIVE = { subject: 'workers.alive', queue: 'workers' } as const;

export class MalformedMessageError extends Error {
  override readonly name = 'MalformedMessageError';
}

/** Returns a valid message unchanged. @throws MalformedMessageError */
type Check<T> = (message: unknown) => T;

const ajv = new Ajv({ ...OWN_SCHEMAS, discriminator: true });

/**
 * The schema is compiled with the first message: compiling all schemas would slow down the start of every process and
 * command.
 */
function check<T>(what: string, schema: Schema): Check<T> {
  let compiled: ValidateFunction<T> | undefined;
  return (message) => {
    const validate = (compiled ??= ajv.compile<T>(schema));
    if (validate(message)) return message;
    throw new MalformedMessageError(`malformed ${what}: ${ajv.errorsText(validate.errors, { dataVar: 'message' })}`);
  };
}

type Properties = Readonly<Record<string, unknown>>;

/** @param extra optional properties of any outcome */
export function workerRequest<Q extends object, R extends object>(
  subject: string,
  queue: string,
  request: Exclude<Schema, boolean>,
  answers: readonly Properties[],
  extra: Properties = {},
): WorkerRequest<Q, R> {
  return {
    subject,
    queue,
    request: check(`request on ${subject}`, request),
    reply: check(`answer on ${subject}`, {
      type: 'object',
      required: ['outcome'],
      discriminator: { propertyName: 'outcome' },
      properties: extra,
      oneOf: [...answers, retryLater, impossible].map((properties) => object(properties)),
    }),
  };
}

export const object = (properties: Properties, optional: Properties = {}): Exclude<Schema, boolean> => ({
  type: 'object',
  properties: { ...properties, ...optional },
  required: Object.keys(properties),
});

export const id = { type: 'string', minLength: 1, maxLength: 200 };
export const text = { type: 'string', maxLength: 10_000 };
export const yes = { type: 'boolean' };
export const attempt = { type: 'integer', minimum: 1 };

const retryLater = {
  outcome: { const: 'retry_later' },
  after_ms: { type: 'number', minimum: 0 },
  limited: yes,
  cause: text,
};
const impossible = { outcome: { const: 'impossible' }, cause: text };
