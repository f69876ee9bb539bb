/** Purchases have led to their gifts and notifications, once the service has had time to finish its work. */
import { type GiftBlocked, isSomebody, type GiftIssued, giftStream } from '../../../src/domain/gift/events.js';
import { deriveGiftIds } from '../../../src/domain/giftIds.js';
import { notificationStream } from '../../../src/domain/notification.js';
import type { GiftsPurchased } from '../../../src/domain/purchase/events.js';
import { idOf } from '../../../src/domain/streamName.js';
import type { EventLog } from '../engines/eventLog.js';
import type { Finding } from '../model/finding.js';
import { parkedEntities, waitingEntities } from './parked.js';

const NOTIFIED = new Set(['NotificationSent', 'NotificationFailed']);

/** Streams of the gifts with a block that has not ended. */
function blockedGifts(stored: EventLog['stored']): ReadonlySet<string> {
  const blocks = new Set<string>();
  for (const { stream, type, data } of stored) {
    if (type !== 'GiftBlocked' && type !== 'GiftUnblocked') continue;
    const block = `${stream} ${(JSON.parse(data) as GiftBlocked['data']).cause}`;
    if (type === 'GiftBlocked') blocks.add(block);
    else blocks.delete(block);
  }
  return new Set([...blocks].map((block) => block.slice(0, block.indexOf(' '))));
}

export function checkGifts({ stored }: Pick<EventLog, 'stored'>): Finding[] {
  const types = new Map<string, Set<string>>();
  const blocked = blockedGifts(stored);
  for (const { stream, type } of stored) types.set(stream, (types.get(stream) ?? new Set()).add(type));
  const parked = parkedEntities({ stored });
  const waiting = waitingEntities({ stored });
  const findings: Finding[] = [];
  for (const { stream, type, data } of stored) {
    if (type === 'GiftsPurchased') {
      const { seed, receivers } = JSON.parse(data) as GiftsPurchased['data'];
      const charged = types.get(stream)?.has('PaymentCharged') === true;
      for (const { gift_id } of deriveGiftIds(seed, Math.max(1, receivers.length)))
        if (charged && types.get(giftStream(gift_id))?.has('GiftIssued') !== true && !parked.has(idOf(stream)))
          findings.push({ rule: 'gifts', text: `${stream} is charged, and its gift ${gift_id} was never issued` });
    }
    if (type === 'GiftIssued') {
      const { receiver } = JSON.parse(data) as GiftIssued['data'];
      const told = [...(types.get(notificationStream(idOf(stream))) ?? [])].some((one) => NOTIFIED.has(one));
      const over = waiting.has(idOf(stream)) || types.get(stream)?.has('GiftCancelled') === true;
      // The end of a block requests the notification.
      if (isSomebody(receiver) && !told && !over && !blocked.has(stream))
        findings.push({ rule: 'notifications', text: `the receiver of ${stream} was neither notified nor given up` });
    }
  }
  return findings;
}
