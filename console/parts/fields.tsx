/** Fields of an entity, whatever the service has of it. */
import type { ComponentChildren } from 'preact';
import { count, giftPath, Id, personPath, pounds, Time, transactionPath, words } from './text.js';

/** Pages of ids, by the names of their fields. */
const PAGES: Readonly<Record<string, (id: string) => string>> = {
  gift_id: giftPath,
  replaced_by: giftPath,
  replaces: giftPath,
  transaction_id: transactionPath,
  buyer_id: personPath,
  sender_id: personPath,
  receiver_id: personPath,
  user_id: personPath,
};
/** Numbers in these fields are pence. */
const PENCE: ReadonlySet<string> = new Set([
  'sale_price',
  'total',
  'amount',
  'value',
  'paid',
  'refunded',
  'difference',
]);
/** Entries of a longer list are shown on request: a purchase may have 10,000 receivers. */
const MOST_SHOWN = 20;
const ISO_TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;

function shown(name: string, value: unknown): ComponentChildren {
  if (Array.isArray(value) && value.length > MOST_SHOWN)
    return (
      <details>
        <summary>{count(value.length)} entries</summary>
        <code>{JSON.stringify(value)}</code>
      </details>
    );
  if (isFew(value)) return <Few of={value} />;
  if (typeof value === 'object') return <code>{JSON.stringify(value)}</code>;
  if (typeof value === 'number' && PENCE.has(name)) return pounds(value);
  const text = String(value as string | number | boolean);
  const page = PAGES[name];
  if (page !== undefined) return <Id of={text} to={page} />;
  return ISO_TIME.test(text) ? <Time at={text} /> : text;
}

/** Fields of a field that are read in one line. */
const MOST_FEW = 4;

/** Whether it is an object of a few plain fields, such as a receiver or the gift in another one’s place. */
function isFew(value: unknown): value is object {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const values: unknown[] = Object.values(value);
  return values.length <= MOST_FEW && values.every((one) => typeof one !== 'object');
}

function Few({ of }: { readonly of: object }) {
  return (
    <>
      {Object.entries(of).map(([name, value], index) => (
        <span key={name}>
          {index === 0 ? '' : ', '}
          {words(name)}: {shown(name, value)}
        </span>
      ))}
    </>
  );
}

/** Fields without a value are left out. */
function isEmpty(value: unknown): boolean {
  if (typeof value !== 'object') return value === '' || value === undefined;
  return value === null || Object.keys(value).length === 0;
}

/** @param texts replace a field's value by its name */
export function Fields({
  of,
  texts = {},
}: {
  readonly of: object;
  readonly texts?: Readonly<Record<string, ComponentChildren>>;
}) {
  return (
    <dl class="fields">
      {Object.entries({ ...of, ...texts })
        .filter(([, value]) => !isEmpty(value))
        .map(([name, value]) => (
          <div key={name}>
            <dt>{words(name)}</dt>
            <dd>{name in texts ? texts[name] : shown(name, value)}</dd>
          </div>
        ))}
    </dl>
  );
}
