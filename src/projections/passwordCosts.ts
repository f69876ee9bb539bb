/**
 * Costs of present and earlier hashes of passwords and client secrets. A failing check computes a hash of each cost, so
 * that its time reveals no name (docs/decisions/equal-password-checks.md). The document ids are the costs.
 */
import { HIDDEN_FIELDS } from './hiddenFields.js';
import type { Client, ClientEvent, User, UserEvent } from '../domain/account.js';
import { costOf } from '../lib/passwordHash.js';
import { type Projection, typesOf } from '../runtime/readmodels/index.js';

type Folded = Extract<UserEvent | ClientEvent, { type: `${string}${'Added' | 'Changed'}` }>['type'];
const TYPES = typesOf<Folded>({ UserAdded: true, UserChanged: true, ClientAdded: true, ClientChanged: true });

const NO_FIELDS = {};

export const passwordCostsProjection: Projection<object> = {
  name: 'password_costs',
  version: 1,
  hidden: HIDDEN_FIELDS,
  indexes: [],
  types: TYPES,
  creates: TYPES,
  documentIds({ data }) {
    const { password_hash, secret_hash } = data as Partial<User & Client>;
    const cost = costOf(password_hash ?? secret_hash ?? '');
    return cost === undefined ? [] : [cost];
  },
  evolve: () => NO_FIELDS,
};
