/** Requested erasures of persons (docs/personal-data.md#requested-erasures). */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { Link } from 'wouter-preact';
import type { ErasureRequestView } from '../../src/ops/people/erasure/erasures.js';
import { get, post } from '../service/call.js';
import { type Loaded, useLoaded } from '../service/loaded.js';
import { Action, may, type Values } from './action.js';
import { Fields } from './fields.js';
import { Done, Shown } from './page.js';
import { Time } from './text.js';

interface Requests {
  readonly data: readonly ErasureRequestView[];
}

/** All that are requested or in progress: the service answers them in one list. */
export const useErasures = (): Loaded<Requests> =>
  useLoaded(async (signal) => get<Requests>('ops/erasures', { signal }), []);

interface ErasureProps {
  readonly person: string;
  readonly done: () => void;
}

/** Whether the erasure of a person is requested, and what can be done about it. */
export function Erasure({ person, done }: ErasureProps) {
  const requests = useErasures();
  const [said, setSaid] = useState<ComponentChildren>();
  return (
    <Shown of={requests}>
      {({ data }) => {
        const request = data.find((one) => one.person === person);
        const say = (text: ComponentChildren): ComponentChildren => {
          setSaid(text);
          requests.reload();
          done();
          return text;
        };
        return (
          <>
            {said === undefined ? null : <Done>{said}</Done>}
            {request === undefined ? (
              <p>No erasure is requested.</p>
            ) : (
              <Fields of={{ ...request, id: '', person: '', erasure: request.status, status: '' }} />
            )}
            <Actions person={person} status={request?.status} say={say} />
            <p>
              <Link href="/erasures">All requested erasures</Link>
            </p>
          </>
        );
      }}
    </Shown>
  );
}

interface ActionsProps extends Pick<ErasureProps, 'person'> {
  /** Shows what was done, and loads again what it has changed. */
  readonly say: (text: ComponentChildren) => ComponentChildren;
  readonly status: ErasureRequestView['status'] | undefined;
}

function Actions({ person, status, say }: ActionsProps) {
  const path = `ops/people/${encodeURIComponent(person)}/erasure`;
  const body = ({ reason = '' }: Values): object => ({ reason });
  if (!may(['support'])) return null;
  return (
    <div class="actions">
      {status === undefined ? (
        <Action
          key="request"
          label="Request the erasure"
          effect="The person is forgotten for good, once another user of support approves it or when it is due. Until then it can be withdrawn."
          run={async (values, key) => {
            const { data } = await post<{ readonly data: ErasureRequestView }>(path, body(values), key);
            if (data.erased_at !== null) return 'The person was erased before.';
            return say(
              <>
                It is requested. It is due <Time at={data.due_at} />.
              </>,
            );
          }}
        />
      ) : (
        <Action
          key="approve"
          label="Approve and erase"
          effect="All that tells who this person is, is destroyed now. It can’t be undone. It takes another user of support than the one who requested it."
          run={async (values, key) => {
            const { data } = await post<{
              readonly data: { readonly erased_at: string; readonly complete_at: string };
            }>(`${path}/approve`, body(values), key);
            return say(
              <>
                Erased <Time at={data.erased_at} />. The last backup that could hold the keys ends{' '}
                <Time at={data.complete_at} />.
              </>,
            );
          }}
        />
      )}
      {status === 'requested' ? (
        <Action
          key="withdraw"
          label="Withdraw the erasure"
          effect="The person stays as they are. Another request can follow."
          run={async (values, key) => {
            await post(`${path}/withdraw`, body(values), key);
            return say('It is withdrawn.');
          }}
        />
      ) : null}
    </div>
  );
}
