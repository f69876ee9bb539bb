/** The process managers, in the order in which a takeover resumes their work; see docs/process-managers.md. */
import { LRUCache } from 'lru-cache';
import type { GiftIssued, GiftReassigned, GiftReleased, GiftUnblocked, ReminderDue } from '../domain/gift/events.js';
import type { NotificationEvent } from '../domain/notification.js';
import type { ParkedName, ParkedWork, WorkParked, WorkRetried } from '../domain/parked.js';
import { type GiftsPurchased, type PurchaseEvent, transactionStream } from '../domain/purchase/events.js';
import type { SendingEvent } from '../domain/purchase/sending.js';
import type { EventStore } from '../ports/eventStore.js';
import { disputeManager } from './dispute/manager.js';
import { notificationManager } from './notification/manager.js';
import type { NotifyDeps, ShownPurchase } from './notification/notifyStep.js';
import type { ChargeDeps } from './purchase/chargeStep.js';
import { purchaseManager } from './purchase/manager.js';
import { walletPayments } from './purchase/walletPayments.js';
import { refundManager } from './refund/manager.js';
import {
  feedTypes,
  type ProcessManagers,
  type Processors,
  runManagers,
  type RunnerDeps,
  type StepDeps,
} from './runner/index.js';

export const MANAGERS = [purchaseManager, notificationManager, refundManager, disputeManager] as const;

export const FEED_TYPES = feedTypes(MANAGERS);

/**
 * Events that a process manager must follow. An undelivered message leads to no work: support may request a resend. A
 * started attempt belongs to the job that started it. Scheduled gifts are released by `schedule/`.
 */
type FeedEvent =
  | Exclude<PurchaseEvent, SendingEvent>
  | GiftIssued
  | GiftReassigned
  | GiftReleased
  | GiftUnblocked
  | ReminderDue
  | Exclude<NotificationEvent, { type: 'NotificationUndelivered' | 'NotificationStarted' }>
  | WorkParked
  | WorkRetried;

// An event type without a process manager does not compile.
({}) satisfies Record<Exclude<FeedEvent['type'], FollowedBy<(typeof MANAGERS)[number]>>, true>;

type FollowedBy<M> = M extends { readonly events: infer E } ? keyof E : never;

export interface Lookups
  extends Pick<ChargeDeps, 'paymentMethod'>, Pick<NotifyDeps, 'contact' | 'numberOf' | 'openText' | 'launchUrl'> {}

export type ManagerDeps = StepDeps &
  Lookups &
  Pick<ChargeDeps, 'wallets'> &
  Pick<NotifyDeps, 'senderName' | 'purchase'>;

export function processManagers({
  paymentMethod,
  contact,
  numberOf,
  openText,
  launchUrl,
}: Lookups): ProcessManagers<ManagerDeps> {
  return {
    managers: MANAGERS,
    open: (deps) => ({
      ...deps,
      paymentMethod,
      contact,
      numberOf,
      openText,
      launchUrl,
      senderName: senderNames(contact),
      purchase: shownPurchases(deps.events),
      wallets: walletPayments(deps.events, deps.writer),
    }),
  };
}

/** Most purchases in memory. */
const MOST_CACHED = 1_000;

/** Ten thousand gifts of one purchase may be notified at once: its first event is read for one of them. */
function shownPurchases(events: Pick<EventStore, 'read'>): NotifyDeps['purchase'] {
  const shown = new LRUCache<string, ShownPurchase>({
    max: MOST_CACHED,
    fetchMethod: async (transactionId) => {
      const [first] = await events.read(transactionStream(transactionId), { limit: 1 });
      if (first === undefined) throw new Error('a gift names a purchase that was never made');
      const { buyer_id, product_name, message } = first.data as GiftsPurchased['data'];
      return { buyer_id, product_name, message };
    },
  });
  return (transactionId) => shown.forceFetch(transactionId);
}

/** Concurrent look-ups of a name share one answer. None is used again: the person may be erased by then. */
function senderNames(contact: Lookups['contact']): NotifyDeps['senderName'] {
  const pending = new Map<string, Promise<string>>();
  const nameOf = async (buyerId: string): Promise<string> => (await contact(buyerId))?.name ?? '';
  return async (buyerId) => {
    let name = pending.get(buyerId);
    if (name === undefined) {
      name = nameOf(buyerId).finally(() => pending.delete(buyerId));
      pending.set(buyerId, name);
    }
    return name;
  };
}

/**
 * Whether parked work has ended since, successfully or not. The streams of its entity show that: a successful retry
 * appends nothing to the stream of parked work. @throws UnavailableError
 */
export async function isSettled(
  events: EventStore,
  { name, work }: { readonly name: ParkedName; readonly work: Pick<ParkedWork, 'entity' | 'transaction_id' | 'step'> },
): Promise<boolean> {
  const manager = MANAGERS.find(({ steps }) => steps.includes(work.step));
  if (manager === undefined) throw new Error(`parked by ${name} under an unknown step, ${work.step}`);
  return manager.isSettled(events, work);
}

export interface ProcessorDeps extends Omit<RunnerDeps<ManagerDeps>, 'processes'>, Lookups {}

export function runProcessors(deps: ProcessorDeps): Processors {
  return runManagers({ ...deps, processes: processManagers(deps) });
}
