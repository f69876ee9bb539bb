/** What an auditor is shown of gifts' lives is what the log holds: who did what, and when (docs/support.md). */
import { giftStream } from '../../../src/domain/gift/events.js';
import { notificationStream } from '../../../src/domain/notification.js';
import { transactionStream } from '../../../src/domain/purchase/events.js';
import { idOf } from '../../../src/domain/streamName.js';
import type { StoredEvent } from '../engines/eventLog.js';
import type { Finding } from '../model/finding.js';
import { type Answer, field, listField, textField } from '../model/history.js';
import type { Cluster } from '../service/cluster.js';
import type { Member } from '../service/member.js';
import { perform } from '../world/simulatedWorld.js';
import { AUDITOR, openStaffReader } from './staffReader.js';

/** Gifts of a run whose histories are read, one bought after the other. */
const MOST = 5;
/** Events of a purchase that are part of each of its gifts' lives. */
const OF_ALL_GIFTS = new Set(['GiftsPurchased', 'ChargeStarted', 'PaymentCharged']);

/** To be called once nothing fails any more. @param members those that serve the API */
export async function checkHistories(cluster: Cluster, members: readonly Member[]): Promise<Finding[]> {
  const { simulation, log } = cluster;
  const { client, read } = openStaffReader(cluster, members, 'auditor of gifts');
  const issued = log.stored.flatMap(({ stream, type }) => (type === 'GiftIssued' ? [idOf(stream)] : []));
  return perform(simulation, client.process, 'read histories', async () => {
    const findings: Finding[] = [];
    const first = client.chance.integer(Math.max(1, issued.length - MOST + 1));
    for (const gift of issued.slice(first, first + MOST)) {
      const wrong = differenceOf(gift, await read(AUDITOR, `/ops/gifts/${gift}/history`), log.stored);
      if (wrong !== undefined) findings.push({ rule: 'history', text: `gift ${gift}: ${wrong}` });
    }
    return findings;
  });
}

/** @returns what is wrong with the shown history of the gift; `undefined`: nothing */
export function differenceOf(gift: string, answer: Answer, stored: readonly StoredEvent[]): string | undefined {
  if (answer.status !== 200) return `status ${answer.status}`;
  const shown = listField(answer.body, 'data').map(shownLine);
  if (shown.some((line, index) => index > 0 && line < (shown[index - 1] ?? ''))) return 'not in the order of the log';
  const purchase = transactionStream(textField(answer.body, 'transaction_id') ?? '');
  const lines = new Map(stored.map((event) => [storedLine(event), event]));
  const invented = shown.find((line) => !lines.has(line));
  if (invented !== undefined) return `the log does not hold ${invented}`;
  const seen = new Set(shown);
  const due = [...lines].filter(
    ([, { stream, type }]) =>
      stream === giftStream(gift) ||
      stream === notificationStream(gift) ||
      (stream === purchase && OF_ALL_GIFTS.has(type)),
  );
  const missing = due.find(([line]) => !seen.has(line));
  return missing === undefined ? undefined : `lacks ${missing[0]}`;
}

const shownLine = (event: unknown): string =>
  ['position', 'type', 'id', 'at'].map((name) => String(field(event, name))).join(' ') +
  ` by ${String(field(event, 'by', 'user'))}`;

function storedLine({ position, type, id, at, metadata }: StoredEvent): string {
  const { by } = JSON.parse(metadata) as { readonly by?: { readonly user?: string } };
  return `${position} ${type} ${id} ${at} by ${String(by?.user)}`;
}
