/** Tells one receiver: claims it in the notification's stream, asks for it to be sent, records the answer. Never sends what may have been sent. */
import { fold, type Happened } from '../domain/decider.js';
import { type Notification, notificationAggregate, type NotificationEvent, type NotificationFailed, type NotificationSent, notificationStream } from '../domain/notification.js';
import type { GiftsPurchased } from '../domain/purchase.js';
import type { Bus } from '../ports/bus.js';
import type { EventStore } from '../ports/eventStore.js';
import { checks, type SendLookup, type SendReply, type SendRequest, SUBJECTS } from '../workers/messages.js';
import { type Address, addressOf, type Contact, type NotificationWork } from './notification.js';
import { answered, neverBegun, type Patience } from './retry.js';
import { type Seen, seenOf } from './seen.js';
import type { Writer } from './writing.js';

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
  readonly patience: Patience;
  /** Throws when this process may not act any more. */
  readonly mayAct: () => void;
}

/** What this process knows of earlier attempts; kept between them. */
export interface TellMemory {
  /** True once telling was started here and has certainly not reached a worker since. */
  unsent: boolean;
  attempts: number;
}

/** The telling of one receiver. */
export interface Telling {
  readonly giftId: string;
  readonly work: NotificationWork;
  readonly purchase: GiftsPurchased['data'];
}

/** Tells. @throws Error: try again; while it stays unknown whether the receiver was told, a plain one, so that it is parked in the end. */
export async function tell(deps: TellDeps, telling: Telling, memory: TellMemory): Promise<void> {
  const { giftId, work, purchase } = telling;
  const stream = notificationStream(giftId);
  const fresh = memory.attempts++ === 0 && work.stage === 'due';
  const known = fresh ? undefined : await read(deps.events, stream);
  if (known !== undefined) return takeUp(deps, telling, memory, known);

  const address = work.cancelled === true ? undefined : await addressIn(deps, telling);
  const reason = { commandId: `tell-${giftId}`, cause: work.last };
  if (address === undefined) {
    const failed: NotificationFailed = { type: 'NotificationFailed', data: { cause: work.cancelled === true ? CANCELLED : NO_ADDRESS } };
    await deps.writer.append(stream, failed, 'none', reason);
    return undefined;
  }
  const data = { transaction_id: purchase.transaction_id, channel: address.channel };
  const started = await deps.writer.append(stream, { type: 'NotificationStarted', data }, 'none', reason);
  if (started !== undefined) {
    memory.unsent = true;
    return send(deps, telling, memory, address, started);
  }
  const standing = await read(deps.events, stream);
  return standing === undefined ? undefined : takeUp(deps, telling, memory, standing);
}

const NO_ADDRESS = 'no address';
const CANCELLED = 'gift is cancelled';

interface Standing {
  readonly state: Notification;
  readonly last: Seen;
}

async function read(events: EventStore, stream: string): Promise<Standing | undefined> {
  const history = await events.read(stream);
  const last = history.at(-1);
  return last === undefined ? undefined : { state: fold(notificationAggregate, history as unknown as Happened<NotificationEvent>[]), last: seenOf(last) };
}

async function addressIn({ contact }: TellDeps, { purchase, work }: Telling): Promise<Address | undefined> {
  const receiver = purchase.receivers[work.index] ?? {};
  return addressOf(receiver, receiver.user_id === undefined ? undefined : await contact(receiver.user_id));
}

/** Goes on with what was started: sent, failed, or never begun is what the provider's side must say first. */
async function takeUp(deps: TellDeps, telling: Telling, memory: TellMemory, { state, last }: Standing): Promise<void> {
  if (state.status !== 'started') return;
  const address = await addressIn(deps, telling);
  if (!memory.unsent) {
    const { giftId } = telling;
    const lookup: SendLookup = { gift_id: giftId, started_at: state.startedAt, channel: state.channel, to: address?.to ?? [], launch_url: deps.launchUrl(giftId) };
    const found = answered(checks.sendLookupReply(await deps.bus.request(SUBJECTS.lookUpNotification, lookup, { timeoutMs: deps.patience.answerMs })));
    if (found.outcome === 'unknown') throw new Error('nobody knows whether the receiver was told');
    if (found.outcome === 'sent' || found.outcome === 'failed') return record(deps, telling, found, state.channel, last);
  }
  if (telling.work.cancelled === true) return record(deps, telling, { outcome: 'failed', cause: CANCELLED, simulated: false }, state.channel, last);
  if (address === undefined) return record(deps, telling, { outcome: 'failed', cause: NO_ADDRESS, simulated: false }, state.channel, last);
  return send(deps, telling, memory, address, last);
}

async function send(deps: TellDeps, telling: Telling, memory: TellMemory, { channel, to, locale }: Address, started: Seen): Promise<void> {
  const { giftId, purchase } = telling;
  const request: SendRequest = {
    gift_id: giftId,
    transaction_id: purchase.transaction_id,
    buyer_id: purchase.buyer_id,
    channel,
    to,
    sender_name: await deps.senderName(purchase),
    product_name: purchase.product_name,
    message: purchase.message,
    launch_url: deps.launchUrl(giftId),
    locale,
  };
  deps.mayAct();
  memory.unsent = false;
  const reply = await ask(deps, request).catch((error: unknown) => {
    memory.unsent = neverBegun(error);
    throw error;
  });
  await record(deps, telling, reply, channel, started);
}

async function ask({ bus, patience }: TellDeps, request: SendRequest): Promise<SendReply> {
  return answered(checks.sendReply(await bus.request(SUBJECTS.send, request, { timeoutMs: patience.answerMs })));
}

/** Records the answer; a conflict means that it has been recorded already. */
async function record({ writer }: TellDeps, { giftId }: Telling, reply: SendReply, channel: Address['channel'], after: Seen): Promise<void> {
  const event: NotificationSent | NotificationFailed =
    reply.outcome === 'sent'
      ? { type: 'NotificationSent', data: { channel, provider: reply.provider, message_id: reply.message_id } }
      : { type: 'NotificationFailed', data: { cause: reply.cause } };
  await writer.append(notificationStream(giftId), event, after.revision, { commandId: `tell-${giftId}`, cause: after, simulated: reply.simulated });
}
