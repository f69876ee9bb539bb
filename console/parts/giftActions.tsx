/** Support's actions on gifts, for one or for many (docs/support.md#many-at-once). */
import type { ComponentChildren } from 'preact';
import { actOnMany, type ManyBody } from '../service/many.js';
import { Action, type Field, type Say, type Values } from './action.js';
import { Report } from './report.js';
import { count, giftPath } from './text.js';

interface Offered {
  readonly action: string;
  readonly label: string;
  readonly effect: string;
  readonly fields?: readonly Field[];
}

const TICKET: Field = { name: 'ticket', label: 'Ticket', optional: true };

const RECEIVER: readonly Field[] = [
  { name: 'phone_number', label: 'Number of the new receiver', type: 'tel', optional: true },
  { name: 'user_id', label: 'Or their user id', optional: true },
];

const OFFERED: readonly Offered[] = [
  { action: 'resend', label: 'Resend', effect: 'The receiver is notified once more. Nothing is charged.' },
  {
    action: 'reassign',
    label: 'Reassign',
    effect: 'The gift becomes another person’s, who is notified. The former receiver loses it.',
    fields: RECEIVER,
  },
  {
    action: 'extend',
    label: 'Extend',
    effect: 'The gift is valid until the end of the new day.',
    fields: [{ name: 'expiry_date', label: 'New last valid day', type: 'date' }],
  },
  { action: 'block', label: 'Block', effect: 'The gift can’t be redeemed until it is unblocked.', fields: [TICKET] },
  { action: 'unblock', label: 'Unblock', effect: 'The gift can be redeemed again.', fields: [TICKET] },
  {
    action: 'unredeem',
    label: 'Reverse the redemption',
    effect: 'The latest redemption is reversed, at whichever merchant: the gift is worth its price again.',
  },
  {
    action: 'replace',
    label: 'Replace',
    effect: 'The gift is cancelled, and its owner gets a new one at no charge. Each gift is replaced once.',
    fields: [
      { name: 'voided', label: 'The issuer has made its voucher code worthless', type: 'checkbox', optional: true },
    ],
  },
];

interface GiftActionsProps {
  readonly ids: readonly string[];
  /** Actions left out. */
  readonly without?: readonly string[];
  readonly done: () => void;
}

export function GiftActions({ ids, without = [], done }: GiftActionsProps) {
  return (
    <div class="actions">
      {OFFERED.filter(({ action }) => !without.includes(action)).map(({ action, label, effect, fields = [] }) => {
        const call = async (values: Values, say: Say, key?: string): Promise<ComponentChildren> => {
          const progress = (handled: number): void => say(`${count(handled)} of ${count(ids.length)} gifts`);
          const items = await actOnMany(bodyOf(action, ids, values, fields), { key, progress });
          return <Report items={items} dry={key === undefined} to={giftPath} />;
        };
        return (
          <Action
            key={action}
            label={label}
            of={ids.join()}
            effect={ids.length > 1 ? `${effect} For ${count(ids.length)} gifts.` : effect}
            fields={fields}
            preview={call}
            run={async (values, key, say) => call(values, say, key)}
            done={done}
          />
        );
      })}
    </div>
  );
}

/** A receiver belongs to each item, everything else to the call. */
function bodyOf(action: string, ids: readonly string[], values: Values, fields: readonly Field[]): ManyBody {
  const given: Record<string, string | boolean> = {};
  for (const { name, type } of fields) {
    const value = values[name]?.trim() ?? '';
    if (value !== '') given[name] = type === 'checkbox' ? true : value;
  }
  const { phone_number: _n, user_id: _u, ...rest } = given;
  const receiver = Object.fromEntries(
    RECEIVER.map(({ name }) => [name, values[name]?.trim() ?? '']).filter(([, value]) => value !== ''),
  );
  return { action, reason: values['reason'] ?? '', items: ids.map((id) => ({ id, ...receiver })), ...rest };
}
