/** Sign-in and its end, as whoever sits at the browser meets them (docs/console.md#sign-in). */
import assert from 'node:assert/strict';
import { deferred } from '../../src/lib/async/deferred.js';
import { eventually } from '../support/assertions/until.js';
import { client } from '../support/fixtures/testCatalogue.js';
import { consoleSuite, headingOf, onConsole, opened, signedIn, signIn, watched } from '../support/service/console.js';

const { test, testHere } = consoleSuite('sign-in');

const IDLE = /signed out after 15 minutes without input/;
const NO_CLIENT = /import an active client with the id console/;
const ENDED = /Your session has ended/;

testHere('refuses wrong passwords and customers in plain words, and signs staff in', async ({ service, browser }) => {
  await onConsole(await opened(browser, service.url), async (page) => {
    const attempt = async (name: string, password: string): Promise<string> => {
      await page.getByLabel('Username').fill(`${name}@test.example`);
      await page.getByLabel('Password').fill(password);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('button', { name: 'Sign in', disabled: false }).waitFor();
      return page.getByRole('alert').innerText();
    };
    for (const [name, password] of [
      ['sue', 'wrong'],
      ['ann', 'ann-password'],
    ] as const)
      assert.match(await attempt(name, password), /^Username or password is wrong, or the account has no role/);
    assert.equal(await page.getByRole('navigation').getByRole('link').count(), 0);
    await signIn(page, 'sue');
    assert.equal(await headingOf(page), 'Now');
  });
});

testHere('goes on after a reload and in a second tab, and ends in both at once', async ({ service, browser }) => {
  const first = await signedIn(browser, service.url, '/find');
  await onConsole(first, async (page) => {
    await page.reload();
    await page.getByRole('heading', { name: 'Find' }).waitFor();
    const second = await first.context.newPage();
    const faults = watched(second);
    await second.goto(`${service.url}/console`);
    await second.getByRole('heading', { name: 'Now' }).waitFor();
    await second.getByRole('button', { name: 'Sign out' }).click();
    for (const tab of [second, page]) await tab.getByRole('heading', { name: 'Sign in' }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    assert.deepEqual(faults, []);
  });
});

testHere('stores nothing that a script could read', async ({ service, browser }) => {
  const one = await signedIn(browser, service.url);
  await onConsole(one, async (page) => {
    assert.equal(await page.evaluate('document.cookie'), '');
    assert.deepEqual(await page.evaluate('[localStorage.length, sessionStorage.length]'), [0, 0]);
    const [cookie] = await one.context.cookies();
    assert.deepEqual([cookie?.httpOnly, cookie?.sameSite, cookie?.path], [true, 'Strict', '/console/session']);
  });
});

testHere(
  'signs out without input, and keeps what was typed until somebody signs in again',
  async ({ service, browser }) => {
    const one = await opened(browser, service.url, '/find');
    await onConsole(one, async (page) => {
      await page.clock.install();
      await page.reload();
      await signIn(page);
      const named = page.getByLabel('What was named');
      await named.fill('07700 900002');
      await page.clock.runFor('14:00');
      await page.keyboard.press('Shift');
      await page.clock.runFor('14:00');
      assert.equal(await page.getByRole('button', { name: 'Sign out' }).count(), 1, 'a key was pressed');
      await page.clock.runFor('01:30');
      await page.getByText(IDLE).waitFor();
      await signIn(page);
      assert.equal(await named.inputValue(), '07700 900002');
    });
  },
);

testHere('signs out at the first input after the computer slept for longer than that', async ({ service, browser }) => {
  const one = await opened(browser, service.url, '/find');
  await onConsole(one, async (page) => {
    await page.clock.install();
    await page.reload();
    await signIn(page);
    await page.clock.setSystemTime(Date.now() + 16 * 60_000);
    await page.keyboard.press('Shift');
    await page.clock.runFor('00:30');
    assert.deepEqual([await page.getByText(IDLE).count(), await page.getByRole('main').count()], [1, 0]);
  });
});

testHere(
  'lets a new sign-in be where another tab could not tell the service of the former one’s end',
  async (context) => {
    const one = await signedIn(context.browser, context.service.url, '/find');
    await onConsole(one, async (page) => {
      const left = await one.context.newPage();
      await left.clock.install();
      await left.goto(`${context.service.url}/console`);
      await left.getByRole('button', { name: 'Sign out' }).waitFor();
      await left.route('**/console/session/end', async (route) => route.abort());
      await left.clock.runFor('15:30');
      await page.getByText(IDLE).waitFor();
      await signIn(page);
      await left.unroute('**/console/session/end');
      await left.clock.runFor('00:30');
      await page.getByLabel('What was named').fill('bob@test.example');
      await page.getByLabel('Reason').fill('a call');
      await page.getByRole('button', { name: 'Find' }).click();
      await page.getByText('Taken for a username.').waitFor();
    });
  },
);

testHere('leaves a new sign-in its session where the answer to the former one’s end comes later', async (context) => {
  const one = await opened(context.browser, context.service.url, '/find');
  await onConsole(one, async (page) => {
    await page.clock.install();
    await page.reload();
    await signIn(page);
    const held = deferred<void>();
    await page.route(
      '**/console/session/end',
      async (route) => {
        const response = await route.fetch();
        await held.promise;
        // A call that the page has left takes no answer.
        await route.fulfill({ response }).catch(() => undefined);
      },
      { times: 1 },
    );
    await page.clock.runFor('15:30');
    await page.getByText(IDLE).waitFor();
    await signIn(page);
    held.resolve();
    await page.unrouteAll({ behavior: 'wait' });
    assert.equal((await one.context.cookies()).length, 1);
    await page.reload();
    await page.getByRole('heading', { name: 'Find' }).waitFor();
  });
});

testHere('notices that the service has ended the session, at the next call', async ({ service, browser }) => {
  const one = await signedIn(browser, service.url, '/find');
  await onConsole(one, async (page) => {
    const [cookie] = await one.context.cookies();
    const ended = await service.ask('POST', '/console/session/end', {
      body: {},
      headers: { cookie: `${cookie?.name}=${cookie?.value}` },
    });
    assert.equal(ended.status, 200, ended.text);
    await page.getByLabel('What was named').fill('sue@test.example');
    await page.getByLabel('Reason').fill('a call');
    await page.getByRole('button', { name: 'Find' }).click();
    await page.getByRole('dialog').getByText(ENDED).waitFor();
    await signIn(page);
    assert.equal(await page.getByLabel('Reason').inputValue(), 'a call');
    await page.getByRole('button', { name: 'Find' }).click();
    await page.getByText('Taken for a username.').waitFor();
  });
});

testHere('goes on in the field that somebody typed in, once they have signed in again', async (context) => {
  const one = await signedIn(context.browser, context.service.url, '/find');
  await onConsole(one, async (page) => {
    const [cookie] = await one.context.cookies();
    await context.service.ask('POST', '/console/session/end', {
      body: {},
      headers: { cookie: `${cookie?.name}=${cookie?.value}` },
    });
    await page.getByLabel('What was named').fill('sue@test.example');
    await page.getByLabel('Reason').fill('a call');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').getByText(ENDED).waitFor();
    await signIn(page);
    assert.equal(await page.locator(':focus').inputValue(), 'a call');
  });
});

testHere(
  'leaves nothing on the screen for another user, and hides the page meanwhile',
  async ({ service, browser }) => {
    const one = await signedIn(browser, service.url, '/find', 'sue');
    await onConsole(one, async (page) => {
      const named = page.getByLabel('What was named');
      await named.fill('bob@test.example');
      const [cookie] = await one.context.cookies();
      await service.ask('POST', '/console/session/end', {
        body: {},
        headers: { cookie: `${cookie?.name}=${cookie?.value}` },
      });
      await page.getByLabel('Reason').fill('a call');
      await page.getByRole('button', { name: 'Find' }).click();
      await page.getByRole('dialog').getByText(ENDED).waitFor();
      assert.equal(await named.isVisible(), false);
      for (let n = 0; n < 3; n++) await page.keyboard.press('Escape');
      await page.getByRole('heading', { name: 'Sign in' }).waitFor();
      await signIn(page, 'aud');
      await page.getByText('aud (auditor)').waitFor();
      assert.equal(await named.inputValue(), '');
    });
  },
);

testHere(
  'says so without a connection, keeps what was typed, and goes on once it is back',
  async ({ service, browser }) => {
    const one = await signedIn(browser, service.url, '/find');
    await onConsole(one, async (page) => {
      await page.getByLabel('What was named').fill('bob@test.example');
      await page.getByLabel('Reason').fill('a call');
      await one.context.setOffline(true);
      await page.getByRole('button', { name: 'Find' }).click();
      await page.getByRole('alert').getByText('can’t be reached').waitFor();
      await one.context.setOffline(false);
      await page.getByRole('button', { name: 'Find' }).click();
      await page.getByText('Taken for a username.').waitFor();
      assert.equal(await page.getByLabel('What was named').inputValue(), 'bob@test.example');
    });
  },
);

testHere(
  'says so where something else answers in the service’s place, and signs in once it is gone',
  async (context) => {
    await onConsole(await opened(context.browser, context.service.url), async (page) => {
      const answerOnce = async (path: string): Promise<void> => {
        await page.route(path, async (route) => route.fulfill({ body: '<p>Welcome to our network' }), { times: 1 });
      };
      await answerOnce('**/console/session/refresh');
      await page.reload();
      await page.getByRole('dialog').getByText('can’t be reached').waitFor();
      await answerOnce('**/console/session/start');
      await page.getByLabel('Username').fill('boss@test.example');
      await page.getByLabel('Password').fill('boss-password');
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('alert').getByText('can’t be reached').waitFor();
      await answerOnce('**/ops/diagnosis');
      await page.getByRole('button', { name: 'Sign in', disabled: false }).click();
      await page.getByRole('main').getByRole('alert').getByText('can’t be reached').waitFor();
      await page.getByRole('button', { name: 'Try again' }).click();
      await page.getByText('Nothing is wrong').waitFor();
    });
  },
);

testHere('says that a sign-out without connection is none, and signs out once it is back', async (context) => {
  const one = await signedIn(context.browser, context.service.url);
  await onConsole(one, async (page) => {
    await one.context.setOffline(true);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('alert').getByText('You are still signed in').waitFor();
    await one.context.setOffline(false);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  });
});

testHere('shows an auditor no action, and says what a role does not permit', async ({ service, browser }) => {
  await onConsole(await signedIn(browser, service.url, '/parked', 'aud'), async (page) => {
    await page.getByRole('heading', { level: 1 }).waitFor();
    assert.equal(await page.getByRole('button', { name: /retry|discard/i }).count(), 0);
  });
  await onConsole(await signedIn(browser, service.url, '/access', 'sue'), async (page) => {
    await page.getByText('Your role does not permit this.').first().waitFor();
  });
});

testHere('says why a session cannot go on once the console’s client is inactive', async ({ service, browser }) => {
  await onConsole(await signedIn(browser, service.url, '/find'), async (page) => {
    await service.import({ clients: [client('console', { active: false })] });
    await page.getByLabel('What was named').fill('bob@test.example');
    await page.getByLabel('Reason').fill('a call');
    // Tokens of an inactive client are refused within a second.
    await eventually(async () => {
      await page.getByRole('button', { name: 'Find', disabled: false }).click();
      return (await page.getByRole('alert').count()) > 0;
    });
    assert.match(await page.getByRole('alert').innerText(), NO_CLIENT);
    await page.reload();
    await page.getByRole('dialog').getByText(NO_CLIENT).waitFor();
  });
});

test.run();
