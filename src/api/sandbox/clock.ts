/** Routes for the sandbox's clock (docs/api/sandbox.md#the-clock). */
import { clockOffset, currentTime } from '../../lib/clock.js';
import { systemMs } from '../../lib/world.js';
import { timeWithZone } from '../../lib/writtenTime.js';
import type { Records } from '../../ports/readStore.js';
import { moveSharedClock } from '../../runtime/clock/sharedClock.js';
import { faultOf, HttpError } from '../pipeline/errors.js';
import type { Answer, Call, Route } from '../pipeline/route.js';
import { dataAnswer, entity, integerSchema, record, textSchema, timeSchema } from '../pipeline/schemas.js';
import { clientOf } from '../pipeline/commandContext.js';

/**
 * The furthest that the clock goes ahead of the real time, in seconds: some ten years, as far as support can extend a
 * gift.
 */
const MOST_SECONDS = 316_000_000;

const clockSchema = entity('SandboxClock', {
  now: timeSchema('The time of the whole service.'),
  offset_seconds: { type: 'number', description: 'How far that is ahead of the real time.' },
});
const clockExample = { now: '2027-05-04T12:30:00.000Z', offset_seconds: 31_536_000 };

const BODY = record(
  {
    now: textSchema('The new time (RFC 3339, with its zone), later than the present one.'),
    advance: integerSchema('Seconds to go ahead.', { minimum: 1, maximum: MOST_SECONDS }),
  },
  [],
);

const COMMON = {
  path: '/sandbox/clock',
  tag: 'Sandbox',
  caller: 'any',
  noStore: true,
  answers: [dataAnswer('The clock.', clockSchema, clockExample)],
  errors: ['forbidden'],
} as const satisfies Partial<Route>;

const shown = (): Answer => ({
  body: { data: { now: currentTime(), offset_seconds: clockOffset() / 1_000 } },
});

/**
 * The requested move of the clock: a function from the present offset to the new one, in milliseconds.
 * @throws HttpError `schema`
 */
function requestedMove({ body }: Call): (offsetMs: number) => number {
  const { now, advance } = body as { readonly now?: string; readonly advance?: number };
  if ((now === undefined) === (advance === undefined))
    throw new HttpError('schema', { message: 'the body must have now or advance, and not both.' });
  const field = now === undefined ? 'advance' : 'now';
  const target = now === undefined ? undefined : timeWithZone(now);
  if (now !== undefined && target === undefined)
    throw faultOf('now', 'must be a time with its zone, such as 2027-05-04T12:30:00Z.');
  return (offsetMs) => {
    const system = systemMs();
    const next = target === undefined ? offsetMs + (advance ?? 0) * 1_000 : target - system;
    if (next <= offsetMs)
      throw faultOf(
        field,
        `must be later than the sandbox's clock, which is at ${new Date(system + offsetMs).toISOString()}: it only goes forward.`,
      );
    if (next > MOST_SECONDS * 1_000)
      throw faultOf(field, `would put the clock more than ${MOST_SECONDS} seconds ahead of the real time.`);
    return next;
  };
}

export function clockRoutes(records: Records): Route[] {
  return [
    {
      ...COMMON,
      method: 'GET',
      operation: 'getSandboxClock',
      summary: "Show the sandbox's clock",
      description: "For a client's own token.",
      async open(early) {
        clientOf(early);
        return async () => shown();
      },
    },
    {
      ...COMMON,
      method: 'POST',
      operation: 'moveSandboxClock',
      summary: "Move the sandbox's clock ahead",
      description:
        "For a client's own token. The whole service follows: what is due until then happens, and tokens expire, the caller's too. Other processes follow within a second.",
      body: BODY,
      bodyExample: { advance: 31_536_000 },
      async open(early) {
        clientOf(early);
        return async (call) => {
          await moveSharedClock(records, requestedMove(call));
          return shown();
        };
      },
    },
  ];
}
