/**
 * Five requests that lead from nothing to a redeemed gift, which the page of the description runs. They name persons
 * and goods of `examples/demo.json`. So the page has them only where providers are simulated: nothing is paid for
 * there.
 */
import escapeHtml from 'escape-html';

interface FirstStep {
  readonly title: string;
  /** Path of the request; `{name}` stands for a value from an earlier answer. */
  readonly path: string;
  /** Name of the value from an earlier answer that is the token. */
  readonly token?: string;
  readonly body: object;
  /** Name of a value in this answer for later steps, and the path to it in the body. */
  readonly gives: { readonly name: string; readonly at: readonly (string | number)[] };
}

const FIRST_STEPS: readonly FirstStep[] = [
  {
    title: 'The app gets a token of its own, with its id and secret.',
    path: '/oauth/token',
    body: { grant_type: 'client_credentials', client_id: 'demo-app', client_secret: 'demo-app-secret' },
    gives: { name: 'app', at: ['access_token'] },
  },
  {
    title: 'Ada logs in with the app.',
    path: '/oauth/token',
    token: 'app',
    body: { grant_type: 'password', username: 'ada@demo.example', password: 'demo-ada' },
    gives: { name: 'ada', at: ['access_token'] },
  },
  {
    title: 'She buys a flat white for a phone number, which is told of it.',
    path: '/api/v2/transactions',
    token: 'ada',
    body: {
      payment: { method: 'card', reference: 'pm_card_visa' },
      purchase: {
        type: 'gift',
        reference: 'flat-white',
        receivers: [{ phone_number: '07700 900102' }],
        message: 'Enjoy!',
      },
    },
    gives: { name: 'gift', at: ['data', 'gifts', 0] },
  },
  {
    title: 'A till of the shop logs in.',
    path: '/oauth/token',
    token: 'app',
    body: { grant_type: 'password', username: 'till-kettle@demo.example', password: 'demo-till-kettle' },
    gives: { name: 'till', at: ['access_token'] },
  },
  {
    title: 'It redeems the gift.',
    path: '/api/v2/gifts/{gift}/redemptions',
    token: 'till',
    body: { location_id: 'kettle-covent-garden' },
    gives: { name: 'redemption', at: ['data', 'id'] },
  },
];

export const FIRST_STEPS_HTML = `<section id="first-steps">
<h1>Five steps to a redeemed gift</h1>
<p>Each sends its request to this service, on the data of <code>examples/demo.json</code>. Providers are simulated: no money moves, and no message is sent.</p>
<ol>
${FIRST_STEPS.map(
  ({ title, path, body }) => `<li>
<h2>${escapeHtml(title)}</h2>
<p><code>POST ${escapeHtml(path)}</code> <button type="button">Send</button></p>
<textarea rows="${JSON.stringify(body, null, 2).split('\n').length}" spellcheck="false" aria-label="Body">${escapeHtml(JSON.stringify(body, null, 2))}</textarea>
<pre role="status" hidden></pre>
</li>`,
).join('\n')}
</ol>
</section>
`;

export const FIRST_STEPS_SCRIPT = `const steps = ${JSON.stringify(FIRST_STEPS.map(({ path, token, gives }) => ({ path, token, gives })))};
const root = new URL('..', document.currentScript.src);
const known = {};
const needed = (name) => {
  if (known[name] === undefined) throw new Error('First send step ' + (1 + steps.findIndex(({ gives }) => gives.name === name)) + '.');
  return known[name];
};
document.querySelectorAll('#first-steps li').forEach((item, number) => {
  const { path, token, gives } = steps[number];
  const button = item.querySelector('button');
  const shown = item.querySelector('pre');
  const send = async () => {
    const headers = { 'Content-Type': 'application/json' };
    if (token !== undefined) headers.Authorization = 'Bearer ' + needed(token);
    if (path.startsWith('/api/')) headers['Idempotency-Key'] = crypto.randomUUID?.() ?? String(Math.random());
    const url = new URL('.' + path.replace(/\\{(\\w+)\\}/g, (_, name) => needed(name)), root);
    const response = await fetch(url, { method: 'POST', headers, body: item.querySelector('textarea').value });
    const text = await response.text();
    let answer;
    try {
      answer = JSON.parse(text);
    } catch {
      return response.status + '\\n' + text;
    }
    if (response.ok) known[gives.name] = gives.at.reduce((inner, key) => inner?.[key], answer);
    return response.status + '\\n' + JSON.stringify(answer, null, 2);
  };
  button.addEventListener('click', async () => {
    button.disabled = true;
    shown.hidden = false;
    try {
      shown.textContent = await send();
    } catch (error) {
      shown.textContent = error.message;
    }
    button.disabled = false;
  });
});
`;

export const FIRST_STEPS_STYLE = `#first-steps { max-width: 1420px; margin: 0 auto; padding: 20px; font-family: sans-serif; color: #3b4151; }
#first-steps h1 { font-size: 24px; }
#first-steps h2 { font-size: 16px; margin-bottom: 4px; }
#first-steps textarea { width: 100%; box-sizing: border-box; font-family: monospace; }
#first-steps pre { max-height: 300px; overflow: auto; padding: 10px; background: #333; color: #fff; }
`;
