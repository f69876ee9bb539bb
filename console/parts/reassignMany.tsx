/** Receivers exchanged for many gifts at once, each gift with a receiver of its own. */
import type { ComponentChildren } from 'preact';
import { actOnMany } from '../service/many.js';
import { readReceivers } from '../service/receiverLines.js';
import { Action, type Say, type Values } from './action.js';
import { Report } from './report.js';
import { count, giftPath } from './text.js';

interface ReassignManyProps {
  /** Gifts for which the lines are prepared. */
  readonly ids: readonly string[];
  readonly done: () => void;
}

export function ReassignMany({ ids, done }: ReassignManyProps) {
  const call = async ({ lines = '', reason = '' }: Values, say: Say, key?: string): Promise<ComponentChildren> => {
    const items = readReceivers(lines);
    const progress = (handled: number): void => say(`${count(handled)} of ${count(items.length)} gifts`);
    const report = await actOnMany({ action: 'reassign', reason, items }, { key, progress });
    return <Report items={report} dry={key === undefined} to={giftPath} />;
  };
  return (
    <Action
      label="Reassign each"
      of={ids.join()}
      effect="Each gift becomes the person’s in its line, who is notified. The former receivers lose them."
      fields={[
        {
          name: 'lines',
          label: 'Gifts and new receivers',
          type: 'lines',
          hint: 'A line for each gift: its id, a comma, and the number or user id of its new receiver. A number begins with 0 or +.',
          start: ids.map((id) => `${id}, `).join('\n'),
        },
      ]}
      preview={call}
      run={async (values, key, say) => call(values, say, key)}
      done={done}
    />
  );
}
