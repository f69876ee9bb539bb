/** What process managers look up in the read model of accounts. */
import type { AccountDocument } from '../projections/accounts.js';
import type { ReadModel } from '../projections/readModel.js';
import type { ChargeDeps } from './chargeStep.js';
import type { TellDeps } from './tellStep.js';

/** The look-ups; both throw UnavailableError while the read model can't tell. */
export function lookUps(accounts: Pick<ReadModel<AccountDocument>, 'get'>): Pick<ChargeDeps, 'paymentMethod'> & Pick<TellDeps, 'contact'> {
  return {
    async paymentMethod(reference) {
      const found = await accounts.get(`paymentMethod-${reference}`);
      return found?.entry === 'paymentMethod' ? found : undefined;
    },
    async contact(userId) {
      const found = await accounts.get(`user-${userId}`);
      return found?.entry === 'user' ? found : undefined;
    },
  };
}
