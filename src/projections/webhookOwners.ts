import { accountStream } from '../domain/account.js';
import { catalogueStream } from '../domain/catalogue.js';
import type { ReadModel } from '../runtime/readmodels/index.js';
import type { AccountDocument } from './accounts.js';
import type { CatalogueDocument } from './catalogue/catalogue.js';

export interface OwnerModels {
  readonly accounts: Pick<ReadModel<AccountDocument>, 'get'>;
  readonly catalogue: Pick<ReadModel<CatalogueDocument>, 'get'>;
}

/**
 * Whether the owner of webhook endpoints may still be sent anything: a client that is active, a merchant that is not
 * retired.
 * @param owner `client:{id}` or `merchant:{id}` @throws UnavailableError
 */
export async function isOwnerActive({ accounts, catalogue }: OwnerModels, owner: string): Promise<boolean> {
  const id = owner.slice(owner.indexOf(':') + 1);
  if (owner.startsWith('merchant:')) return (await catalogue.get(catalogueStream('merchant', id)))?.retired === false;
  const client = await accounts.get(accountStream('client', id));
  return client?.entry === 'client' && client.active;
}
