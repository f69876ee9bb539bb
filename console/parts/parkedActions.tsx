/** Decisions on parked work: for one piece, and for all of a group (docs/support.md#parked-work-by-group). */
import type { ComponentChildren } from 'preact';
import type { ParkedGroup } from '../../src/ops/parked/groups.js';
import type { ParkedView } from '../../src/ops/parked/parkedView.js';
import { post } from '../service/call.js';
import { goingOn, type ReportItem } from '../service/many.js';
import { Action, type Say, type Values } from './action.js';
import { Report } from './report.js';
import { count, parkedPath } from './text.js';

type Process = ParkedView['process'];
type Decision = 'retry' | 'discard';

const LABELS: Readonly<Record<Decision, string>> = { retry: 'Retry', discard: 'Discard' };

const RETRIED = 'It is done once more. What was charged, notified or refunded already is not done twice.';
const DISCARDED: Readonly<Record<Process, string>> = {
  purchase: 'The charge is given up for good: the purchase is declined, and its gifts are cancelled.',
  notification: 'The receiver is not notified. The gift stays theirs, and can be resent.',
  refund: 'The refund is given up for good: the buyer’s money stays where it is.',
  dispute: 'The dispute stays as it is.',
};

const effectOf = (decision: Decision, process: Process): string =>
  decision === 'retry' ? RETRIED : DISCARDED[process];

interface PieceProps {
  readonly piece: Pick<ParkedView, 'id' | 'process'>;
  readonly done: () => void;
}

export function PieceActions({ piece: { id, process }, done }: PieceProps) {
  return (
    <div class="actions">
      {(['retry', 'discard'] as const).map((decision) => (
        <Action
          key={decision}
          label={LABELS[decision]}
          effect={effectOf(decision, process)}
          run={async ({ reason = '' }, key) => {
            await post(`ops/parked/${encodeURIComponent(id)}/${decision}`, { reason }, key);
            return decision === 'retry' ? 'It was handed back.' : 'It was discarded.';
          }}
          done={done}
        />
      ))}
    </div>
  );
}

interface GroupReport {
  readonly data: { readonly items: readonly ReportItem[]; readonly left: number };
}

/** Pieces of one call. */
const MOST = 100;

interface GroupProps {
  readonly group: ParkedGroup;
  /** @param report what was done, which outlives the group */
  readonly done: (report: ComponentChildren) => void;
}

export function GroupActions({ group, done }: GroupProps) {
  return (
    <div class="actions">
      {(['retry', 'discard'] as const).map((decision) => (
        <Action
          key={decision}
          label={`${LABELS[decision]} all ${count(group.count)}`}
          of={group.id}
          effect={effectOf(decision, group.process)}
          preview={async ({ reason = '' }) => {
            const path = `ops/parked/groups/${group.id}/${decision}`;
            const { data } = await post<GroupReport>(path, { reason, dry_run: true, limit: 1 });
            return `What will happen: ${count(data.left)} will be ${decision === 'retry' ? 'retried' : 'discarded'}.`;
          }}
          run={async (values, key, say) => {
            const { items, left } = await decideAll(group, decision, values, key, say);
            done(
              <>
                <Report items={items} dry={false} to={parkedPath} />
                {left === 0 ? null : <p>{count(left)} are left.</p>}
                {decision === 'retry' ? <p>What fails again is parked again, and comes back here.</p> : null}
              </>,
            );
            return null;
          }}
        />
      ))}
    </div>
  );
}

/**
 * Decides on what waited at the beginning: what is parked again by then is not retried in a circle.
 * @throws Failed: the same call goes on with what is left
 */
async function decideAll(
  { id, count: known }: ParkedGroup,
  decision: Decision,
  { reason = '' }: Values,
  key: string,
  say: Say,
): Promise<{ readonly items: readonly ReportItem[]; readonly left: number }> {
  const items: ReportItem[] = [];
  let left = known;
  for (let turn = 0; ; turn++) {
    const limit = Math.min(MOST, turn === 0 ? MOST : left);
    try {
      const { data } = await post<GroupReport>(
        `ops/parked/groups/${id}/${decision}`,
        { reason, limit },
        `${key}-${turn}-${limit}`,
      );
      const done = data.items.filter(({ outcome }) => outcome !== 'refused').length;
      items.push(...data.items);
      left = turn === 0 ? data.left : Math.max(0, left - done);
      // What is refused waits still, and would be refused again.
      if (left === 0 || done === 0 || done < data.items.length) return { items, left };
    } catch (error) {
      throw goingOn(error, items.length, items.length + left);
    }
    say(`${count(items.length)} of ${count(items.length + left)} pieces`);
  }
}
