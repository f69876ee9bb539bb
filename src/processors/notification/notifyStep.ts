/**
 * Tells one receiver: claims it in the notification's stream, asks for it to be sent, records the answer. Never sends
 * what may have been sent.
 */
import { fold } from '../../domain/decider.js';
import { giftStream } from '../../domain/gift.js';
import {
  type Channel,
  notificationAggregate,
  type NotificationFailed,
  type NotificationSent,
  notificationStream,
} from '../../domain/notification.js';
import type { GiftsPurchased, PurchaseReceiver } from '../../domain/purchase.js';
import type { Bus } from '../../ports/bus.js';
import type { EventStore, ExpectedRevision } from '../../ports/eventStore.js';
import { checks, type SendLookup, type SendReply, type SendRequest, SUBJECTS } from '../../messages/messages.js';
import { type Address, addressOf, type Contact, type NotificationWork } from './manager.js';
import { answered, GiveUpError, neverBegun, type RetryPolicy } from '../runner/retry.js';
import { type Cause, causeOf } from '../runner/cause.js';
import type { Writer } from '../runner/writing.js';

/** What telling works with. */
export interface TellDeps {
  readonly events: EventStore;
  readonly bus: Bus;
  readonly writer: Writer;
  /** How a user can be reached; `undefined`: no such user. @throws UnavailableError */
  readonly contact: (userId: string) => Promise<Contact | undefined>;
  /** The buyer's name, `''` where there is none. @throws UnavailableError */
  readonly senderName: (purchase: GiftsPurchased['data']) => Promise<string>;
  /** The address of the page that shows a gift. */
  readonly launchUrl: (giftId: string) => string;
  readonly retryPolicy: RetryPolicy;
  /** Throws when this process may not act any more. */
  readonly mayAct: () => void;
}

/** What this process knows of earlier tries; kept between them. */
export interface TellMemory {
  /** The attempt that was started here and has certainly not reached a worker since. */
  unsent: number | undefined;
}

/** Nothing has been tried yet. */
export function tellMemory(): TellMemory {
  return { unsent: undefined };
}

/** One telling of a gift's receiver. */
export interface Telling {
  readonly giftId: string;
  /** From 1. */
  readonly attempt: number;
  /** The event that asked for it; absent: the gift's issue. */
  readonly askedBy?: string;
  readonly receiver: PurchaseReceiver;
  readonly purchase: GiftsPurchased['data'];
  /** Why the receiver must not be told any more; absent: they may. What was sent before is recorded all the same. */
  readonly stopped?: string;
}

/** The first telling of a gift's receiver. `work`: as the feed told it. */
export interface FirstTelling extends Omit<Telling, 'attempt' | 'askedBy' | 'receiver' | 'stopped'> {
  readonly work: NotificationWork;
}

/**
 * Tells for the first time. @throws Error: try again; while it stays unknown whether the receiver was told, a plain
 * one, so that it is parked in the end.
 */
export async function tell(
  deps: TellDeps,
  { giftId, work, purchase }: FirstTelling,
  memory: TellMemory,
): Promise<void> {
  const cancelled =
    work.cancelled === true ||
    (work.together === true &&
      (await deps.events.read(giftStream(giftId))).some(({ type }) => type === 'GiftCancelled'));
  const telling: Telling = {
    giftId,
    attempt: 1,
    receiver: purchase.receivers[work.index] ?? {},
    purchase,
    ...(cancelled ? { stopped: CANCELLED } : {}),
  };
  // Whether it was begun here memory says; whether by somebody else its stream, which must have no event.
  if (
    work.stage === 'due' &&
    memory.unsent === undefined &&
    (await begin(deps, telling, memory, 'none', work.last)) === 'done'
  )
    return;
  const history = await deps.events.read(notificationStream(giftId));
  const last = history.at(-1);
  const state = fold(notificationAggregate, history);
  if (last !== undefined && state.status === 'started')
    await takeUp(deps, telling, memory, { ...state, last: causeOf(last) });
}

/**
 * Claims an attempt that nobody has begun, and sends. @returns `raced` when the stream was not at `expected`: somebody
 * else may have begun.
 */
export async function begin(
  deps: TellDeps,
  telling: Telling,
  memory: TellMemory,
  expected: ExpectedRevision,
  cause: Cause,
): Promise<'done' | 'raced'> {
  const stream = notificationStream(telling.giftId);
  const address = telling.stopped === undefined ? await addressIn(deps, telling) : undefined;
  const reason = { commandId: commandIdOf(telling), cause };
  if (address === undefined) {
    const failed: NotificationFailed = {
      type: 'NotificationFailed',
      data: { cause: telling.stopped ?? NO_ADDRESS, ...which(telling) },
    };
    return (await deps.writer.append(stream, failed, expected, reason)) === undefined ? 'raced' : 'done';
  }
  const data = { transaction_id: telling.purchase.transaction_id, channel: address.channel, ...which(telling) };
  const started = await deps.writer.append(stream, { type: 'NotificationStarted', data }, expected, reason);
  if (started === undefined) return 'raced';
  memory.unsent = telling.attempt;
  await send(deps, telling, memory, address, started);
  return 'done';
}

const NO_ADDRESS = 'no address';
const NOBODY_KNOWS = 'nobody knows whether the receiver was told';
/** Why a receiver is not told any more. */
export const CANCELLED = 'gift is cancelled';
/** As above. */
export const REASSIGNED = 'given to another receiver';

/** What an event says of the attempt that it belongs to; the first needs no words. */
function which({ attempt, askedBy }: Telling): { readonly attempt?: number; readonly asked_by?: string } {
  return askedBy === undefined ? {} : { attempt, asked_by: askedBy };
}

const commandIdOf = ({ giftId, attempt }: Telling): string =>
  attempt === 1 ? `tell-${giftId}` : `tell-${giftId}-${attempt}`;

/**
 * The page's address; from the second telling on it says which one it belongs to, so that a provider's list of messages
 * tells them apart.
 */
function addressOfPage({ launchUrl }: TellDeps, { giftId, attempt }: Telling): string {
  return attempt === 1 ? launchUrl(giftId) : `${launchUrl(giftId)}?n=${attempt}`;
}

async function addressIn({ contact }: TellDeps, { receiver }: Telling): Promise<Address | undefined> {
  return addressOf(receiver, receiver.user_id === undefined ? undefined : await contact(receiver.user_id));
}

/** An attempt that was begun. */
export interface Begun {
  readonly startedAt: string;
  readonly channel: Channel;
  /** The last event of the notification's stream. */
  readonly last: Cause;
}

/**
 * Goes on with what was started: sent, failed, or never begun is what the provider's side must say first. @throws as
 * `tell`
 */
export async function takeUp(
  deps: TellDeps,
  telling: Telling,
  memory: TellMemory,
  { startedAt, channel, last }: Begun,
): Promise<void> {
  const address = await addressIn(deps, telling);
  const { giftId: gift_id, attempt } = telling;
  if (memory.unsent !== attempt) {
    const lookup: SendLookup = {
      gift_id,
      ...numbered(attempt),
      started_at: startedAt,
      channel,
      to: address?.to ?? [],
      launch_url: addressOfPage(deps, telling),
    };
    const found = answered(
      checks.sendLookupReply(
        await deps.bus.request(SUBJECTS.lookUpNotification, lookup, { timeoutMs: deps.retryPolicy.answerMs }),
      ),
    );
    if (found.outcome === 'unknown') throw new Error(NOBODY_KNOWS);
    if (found.outcome === 'sent' || found.outcome === 'failed') return record(deps, telling, found, channel, last);
  }
  // Of a push `never` says only that sending it again is safe: it replaces what may be on the device. By another
  // channel it would be told twice.
  if (
    memory.unsent !== attempt &&
    channel === 'push' &&
    telling.stopped === undefined &&
    address !== undefined &&
    address.channel !== channel
  )
    throw new GiveUpError(NOBODY_KNOWS);
  if (telling.stopped !== undefined || address === undefined)
    return record(
      deps,
      telling,
      { outcome: 'failed', cause: telling.stopped ?? NO_ADDRESS, simulated: false },
      channel,
      last,
    );
  return send(deps, telling, memory, address, last);
}

const numbered = (attempt: number): { readonly attempt?: number } => (attempt === 1 ? {} : { attempt });

async function send(
  deps: TellDeps,
  telling: Telling,
  memory: TellMemory,
  { channel, to, locale }: Address,
  started: Cause,
): Promise<void> {
  const { giftId, attempt, purchase } = telling;
  const request: SendRequest = {
    gift_id: giftId,
    ...numbered(attempt),
    transaction_id: purchase.transaction_id,
    buyer_id: purchase.buyer_id,
    channel,
    to,
    sender_name: await deps.senderName(purchase),
    product_name: purchase.product_name,
    message: purchase.message,
    launch_url: addressOfPage(deps, telling),
    locale,
  };
  deps.mayAct();
  memory.unsent = undefined;
  const reply = await ask(deps, request).catch((error: unknown) => {
    if (neverBegun(error)) memory.unsent = attempt;
    throw error;
  });
  await record(deps, telling, reply, channel, started);
}

async function ask({ bus, retryPolicy }: TellDeps, request: SendRequest): Promise<SendReply> {
  return answered(checks.sendReply(await bus.request(SUBJECTS.send, request, { timeoutMs: retryPolicy.answerMs })));
}

/** Records the answer; a conflict means that it has been recorded already. */
async function record(
  { writer }: TellDeps,
  telling: Telling,
  reply: SendReply,
  channel: Address['channel'],
  after: Cause,
): Promise<void> {
  const event: NotificationSent | NotificationFailed =
    reply.outcome === 'sent'
      ? {
          type: 'NotificationSent',
          data: { channel, provider: reply.provider, message_id: reply.message_id, ...which(telling) },
        }
      : { type: 'NotificationFailed', data: { cause: reply.cause, ...which(telling) } };
  await writer.append(notificationStream(telling.giftId), event, after.revision, {
    commandId: commandIdOf(telling),
    cause: after,
    simulated: reply.simulated,
  });
}
