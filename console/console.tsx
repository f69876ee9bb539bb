/**
 * The console: pages for support and auditors, which call the same routes under `/ops` as everybody else
 * (docs/console.md). Addresses are in the fragment, so that no server sees the ids in them.
 */
import './console.css';
import { render } from 'preact';
import { Route, Router, Switch } from 'wouter-preact';
import { useHashLocation } from 'wouter-preact/use-hash-location';
import { type Destination, Layout } from './parts/layout.js';
import { Page } from './parts/page.js';
import { SignIn } from './parts/signIn.js';
import { Access } from './pages/access.js';
import { Erasures } from './pages/erasures.js';
import { Find } from './pages/find.js';
import { Gift } from './pages/gift.js';
import { Log } from './pages/log.js';
import { Money } from './pages/money.js';
import { Now } from './pages/now.js';
import { Parked } from './pages/parked.js';
import { ParkedPiece } from './pages/parkedPiece.js';
import { Person } from './pages/person.js';
import { Transaction } from './pages/transaction.js';
import { Trace } from './pages/trace.js';
import { Transactions } from './pages/transactions.js';
import { ReadModel } from './pages/readModel.js';
import { ReadModels } from './pages/readModels.js';
import { Redemptions } from './pages/redemptions.js';
import { Webhook } from './pages/webhook.js';
import { Webhooks } from './pages/webhooks.js';
import { session, startSession } from './service/session.js';

const DESTINATIONS: readonly Destination[] = [
  { path: '/', name: 'Now' },
  { path: '/find', name: 'Find' },
  { path: '/transactions', name: 'Transactions' },
  { path: '/parked', name: 'Parked work' },
  { path: '/read-models', name: 'Read models' },
  { path: '/log', name: 'Log' },
  { path: '/webhooks', name: 'Webhooks' },
  { path: '/money', name: 'Money' },
  { path: '/access', name: 'Access' },
];

/** A part of an address as it was before `encodeURIComponent`: the router leaves `/`, `:` and `@` encoded. */
function plain(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Pages are made once somebody is signed in, and stay while a session has ended. */
function Pages() {
  return (
    <Switch>
      <Route path="/" component={Now} />
      <Route path="/find" component={Find} />
      <Route path="/gifts/:id">{({ id }) => <Gift key={id} id={id} />}</Route>
      <Route path="/transactions" component={Transactions} />
      <Route path="/transactions/:id">{({ id }) => <Transaction key={id} id={id} />}</Route>
      <Route path="/people/:id">{({ id }) => <Person key={id} id={plain(id)} />}</Route>
      <Route path="/erasures" component={Erasures} />
      <Route path="/parked" component={Parked} />
      <Route path="/parked/:id">{({ id }) => <ParkedPiece key={id} id={plain(id)} />}</Route>
      <Route path="/read-models" component={ReadModels} />
      <Route path="/money" component={Money} />
      <Route path="/redemptions">{() => <Redemptions />}</Route>
      <Route path="/money/:zone/:day/:merchant">
        {({ zone, day, merchant }) => (
          <Redemptions key={`${zone} ${day} ${merchant}`} zone={plain(zone)} day={day} merchant={plain(merchant)} />
        )}
      </Route>
      <Route path="/read-models/:name">{({ name }) => <ReadModel key={name} name={name} />}</Route>
      <Route path="/access" component={Access} />
      <Route path="/webhooks" component={Webhooks} />
      <Route path="/webhooks/:id">{({ id }) => <Webhook key={id} id={id} />}</Route>
      <Route path="/log" component={Log} />
      <Route path="/log/trace/:id">{({ id }) => <Trace key={id} id={plain(id)} />}</Route>
      <Route>
        <Page title="No such page">
          <p>The address leads nowhere.</p>
        </Page>
      </Route>
    </Switch>
  );
}

let hasBegun = false;

function Console() {
  const { state } = session.value;
  hasBegun ||= state === 'in';
  return (
    <Router hook={useHashLocation}>
      <Layout destinations={hasBegun ? DESTINATIONS : []}>
        {hasBegun ? <Pages /> : <p role="status">{state === 'unknown' ? 'Loading…' : ''}</p>}
      </Layout>
      <SignIn />
    </Router>
  );
}

render(<Console />, document.body);
void startSession();
