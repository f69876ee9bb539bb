import type { AccountDocument } from '../../projections/accounts.js';
import type { ReadModel } from '../../runtime/readmodels/index.js';

export interface AccountDeps {
  readonly accounts: ReadModel<AccountDocument>;
  readonly byUser: ReadModel<object>;
}
