import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { describeWith } from '../support/needs.ts'
import { until } from '../support/wait.ts'
import { type ConsoleOptions, expectAccessible } from './support/browser.ts'
import { type CuratedConsole, openCurated } from './support/curated-console.ts'
import { FLOWS, writeFlows } from './support/flows.ts'
import { writeViewPlugin } from './support/view-plugins.ts'

const HTML = '<img src=x onerror="window.hit = 1"><b>bold</b><script>window.hit = 1</script>'
const ROWS = 400_000
const LONGEST_CELL = 2 ** 19
const SCOPES = 'read,chat,workflows'
const RIGHTS = ['GET /views/*', 'POST /views/*', 'DELETE /views/things/*', 'GET /api/v1/tokens', 'GET /other/*']

/** Texts that would be more than text somewhere. `outside` is a server that must not be asked. */
const textsAgainst = (outside: string) =>
  [
    HTML,
    '\u001B[31mred\u001B[0m \u0007bell\u0000',
    '\u202Egnp.exe\u202C and \u2066isolated',
    `[script](javascript:window.hit=1) [data](data:text/html,<script>1</script>) [away](${outside}/away) [\u202Ehere](//${outside}/b)`,
    `![picture](${outside}/picture.png) <${outside}/auto> ${outside}/bare`,
    '[home](/console/runs) [login](/console/oidc?code=x) [frames](/console/frames/a/b/c.html) [files](/console/files/a.js)',
    '[up](/console/../api/v1/tokens) [code](/console/overview#code=x) [api](/api/v1/tokens)',
  ].join('\n\n')

const table = (more: object = {}) => ({
  type: 'table',
  title: 'Things',
  request: 'GET /views/things',
  items: 'things',
  columns: [
    { title: 'Name', value: 'name' },
    { title: 'Link', value: 'link', format: 'link' },
    { title: 'Number', value: 'count', format: 'number' },
    { title: 'At', value: 'at', format: 'time' },
  ],
  ...more,
})
const view = (...parts: object[]) => ({ parts })
const stats = (request: string, more: object = {}) => ({
  type: 'stats',
  request,
  stats: [{ title: 'Value', value: 'value' }],
  ...more,
})
const form = (more: object = {}) => ({
  type: 'form',
  title: 'Add a thing',
  request: 'POST /views/things',
  submit: 'Add',
  schema: {
    type: 'object',
    properties: {
      name: { type: 'string', title: `Name ${HTML}`.slice(0, 60), maxLength: 100 },
      text: { type: 'string', title: 'Text', format: 'textarea' },
      size: { type: 'string', title: 'Size', enum: ['small', 'large'] },
      urgent: { type: 'boolean', title: 'Urgent' },
      labels: { type: 'array', title: 'Labels', items: { type: 'string' } },
    },
    required: ['name'],
  },
  ...more,
})

/** Views that the console does not draw, with the reason. */
const INVALID: Readonly<Record<string, readonly [view: object | string, reason: RegExp]>> = {
  undeclared: [view(stats('GET /secret')), /permissions\.console/],
  others: [view(stats('GET /notes')), /permissions\.console/],
  tokens: [view(stats('GET /api/v1/tokens')), /for no page/],
  'steps-up': [view(stats('GET /views/../other/secret')), /must be GET and a path/],
  encoded: [view(stats('GET /views/%2e%2e/secret')), /must be GET and a path/],
  address: [view(stats('GET //outside.example/views')), /must be GET and a path/],
  'posts-alone': [view(stats('POST /views/things')), /must be GET and a path/],
  bomb: [view(form({ schema: { type: 'object', properties: { a: { $ref: '#' } } } })), /schema\.properties\.a/],
  wide: [
    view(table({ columns: Array.from({ length: 13 }, (_, at) => ({ title: `c${at}`, value: 'a' })) })),
    /must have at most 12 items/,
  ],
  many: [view(...Array.from({ length: 21 }, () => stats('GET /views/plain'))), /must have at most 20 items/],
  title: [view(table({ title: 'Things \u202Egnp' })), /visible characters/],
  expression: [view(stats('GET /views/plain', { stats: [{ title: 'a', value: '${constructor}' }] })), /the path of a value/],
  unknown: [view({ type: 'html', text: HTML }), /type must be one of/],
  large: [JSON.stringify(view({ type: 'markdown', text: 'x' })) + ' '.repeat(65_536), /more than 65536 characters/],
  broken: ['{', /not valid JSON/],
}

describeWith('chromium', 'a hostile view of a plugin', function () {
  this.timeout(180_000)
  let curated: CuratedConsole
  let folder: string

  before(async () => {
    curated = await openCurated(async (home, outside) => {
      const hostile = textsAgainst(outside.url)
      await writeFlows(home, { steps: FLOWS.steps })
      folder = await writeViewPlugin(home, {
        name: 'views',
        rights: RIGHTS,
        pages: {
          tokens_page: { title: 'Tokens', view: view({ type: 'markdown', text: 'A page' }) },
          texts: {
            title: 'Texts',
            view: view(
              { type: 'markdown', text: hostile },
              { type: 'markdown', title: 'Read', request: 'GET /views/texts', value: 'text' },
              stats('GET /views/texts', { title: HTML.slice(0, 60), stats: [{ title: '<b>Value</b>', value: 'text' }] }),
              table({ title: '<i>Things</i>', request: 'GET /views/texts' }),
              {
                type: 'chart',
                title: 'Line',
                request: 'GET /views/texts',
                items: 'points',
                time: 'at',
                lines: [
                  { title: '<b>a</b>', value: 'a' },
                  { title: HTML.slice(0, 60), value: 'b' },
                ],
              },
              form()
            ),
          },
          rows: { title: 'Rows', view: view(table({ request: 'GET /views/rows', items: 'rows' })) },
          toomany: { title: 'Too many', view: view(table({ request: 'GET /views/toomany', items: 'rows' })) },
          cell: { title: 'Cell', view: view(table({ request: 'GET /views/cell' })) },
          toolong: { title: 'Too long', view: view(table({ request: 'GET /views/toolong' })) },
          deep: { title: 'Deep', view: view(stats('GET /views/deep'), table({ request: 'GET /views/deep' })) },
          proto: {
            title: 'Proto',
            view: view(
              stats('GET /views/plain', {
                stats: ['constructor', '__proto__', 'toString.name', 'value.length'].map(value => ({ title: value, value })),
              })
            ),
          },
          broken: { title: 'Broken', view: view(stats('GET /views/broken')) },
          endless: { title: 'Endless', view: view(table({ request: 'GET /views/endless', cursor: 'next' })) },
          actions: {
            title: 'Actions',
            view: view(
              table({
                columns: [{ title: 'Name', value: 'name' }],
                actions: [
                  { title: 'Remove', request: 'DELETE /views/things/{row.id}' },
                  { title: 'Send', request: 'POST /views/{row.where}', confirm: 'Really <b>send</b>?' },
                ],
              })
            ),
          },
          changing: { title: 'Changing', view: view(stats('GET /views/plain')) },
          form: { title: 'Form', view: view(form(), table()) },
          nested: {
            title: 'Nested',
            view: view(
              { type: 'markdown', title: 'Quotes', request: 'GET /views/nested', value: 'quotes' },
              { type: 'markdown', title: 'Brackets', request: 'GET /views/nested', value: 'brackets' },
              { type: 'markdown', title: 'Lists', request: 'GET /views/nested', value: 'lists' }
            ),
          },
          panel: { title: 'Panel', place: 'overview', view: view(stats('GET /views/plain')) },
          of_run: {
            title: 'Of the run',
            place: 'run',
            view: view(stats('GET /views/plain', { query: { id: '{run}' } })),
          },
          of_conversation: {
            title: 'Of the talk',
            place: 'conversation',
            view: view(stats('GET /views/plain', { query: { id: '{conversation}' } })),
          },
          app_panel: { title: 'App panel', place: 'overview' },
          app_of_run: { title: 'App of the run', place: 'run' },
          ...Object.fromEntries(
            Object.entries(INVALID).map(([name, [invalid]]) => [
              `no-${name}`,
              { title: `No ${name.replaceAll('-', ' ')}`, view: invalid },
            ])
          ),
        },
        answers: {
          plain: JSON.stringify({ value: 'plain' }),
          nested: JSON.stringify({
            quotes: `${'>'.repeat(9_000)} end`,
            brackets: '['.repeat(9_000),
            lists: `${'- '.repeat(4_000)} end`,
          }),
          texts: JSON.stringify({
            text: hostile,
            things: hostile.split('\n\n').map(text => ({ name: text, link: text, count: text, at: text })),
            points: [
              { at: '2026-01-01T00:00:00Z', a: 1, b: HTML },
              { at: HTML, a: 2 },
              { at: '2026-01-02T00:00:00Z', a: -3 },
            ],
          }),
          things: JSON.stringify({
            things: [
              { id: 'a', name: 'Good', where: 'things' },
              { id: '../secret', name: 'Up', where: '../other/secret' },
              { id: 'a/../b', name: 'Slash', where: 'things/../../api/v1/tokens' },
              { id: '', name: 'Empty', where: 'things?x=1' },
              { id: { toString: 1 }, name: 'Object', where: null },
            ],
          }),
          rows: `{"rows":[${'0,'.repeat(ROWS)}0]}`,
          toomany: `{"rows":[${'0,'.repeat(10 ** 6)}0]}`,
          cell: JSON.stringify({ things: [{ name: 'x'.repeat(LONGEST_CELL) }] }),
          toolong: JSON.stringify({ things: [{ name: 'x'.repeat(2 ** 20) }] }),
          deep: `{"value":${'['.repeat(500)}${']'.repeat(500)},"things":{}}`,
          broken: 'not JSON, so that the route throws',
          endless: JSON.stringify({ things: [], next: 'more' }),
        },
      })
      return [folder]
    })
  })
  after(() => curated?.[Symbol.asyncDispose]())

  const open = (path: string, options?: ConsoleOptions) => curated.signIn(path, SCOPES, options)
  const asked = (request: string, body?: object) => curated.ask(request, SCOPES, body)
  interface Seen {
    readonly where: string
    readonly params: Record<string, string>
    readonly query: Record<string, string>
    readonly body: unknown
  }
  const seen = async () => ((await (await asked('GET /views/seen')).json()) as { seen: Seen[] }).seen
  const addressesIn = (page: Page) =>
    page.evaluate<string[]>(`[...document.querySelectorAll('main a')].map(a => a.getAttribute('href'))`)

  it('makes no element, no request and no address of its texts', async () => {
    await using opened = await open('pages/texts')
    const { page, problems } = opened
    await page.getByRole('heading', { name: 'Texts', level: 1 }).waitFor()
    await page.getByRole('columnheader', { name: 'Number' }).waitFor()
    await page.locator('.chart canvas').waitFor()
    await page.getByRole('button', { name: 'Add', exact: true }).waitFor()
    await page.locator('main .markdown').nth(1).waitFor()
    expect(await page.locator('main').locator('img, script, iframe, object, b, i, style').count()).to.equal(0)
    const allowed = new Set(['/console/runs'])
    expect((await addressesIn(page)).filter(href => !allowed.has(href))).to.deep.equal([])
    expect(await addressesIn(page)).to.include('/console/runs')
    const shown = await page.locator('main').innerText()
    expect(shown).to.contain('<img src=x onerror=').and.to.contain(`${curated.outside.url}/away`)
    // oxlint-disable-next-line no-control-regex -- none of them is shown
    expect(shown).not.to.match(/[\u0000-\u0008\u001B\u202A-\u202E\u2066-\u2069]/)
    expect(await page.evaluate('window.hit')).to.equal(undefined)
    expect(curated.outside.requests).to.deep.equal([])
    expect(problems).to.deep.equal([])
    await page.getByRole('link', { name: 'home' }).first().click()
    await page.getByRole('heading', { name: 'Runs', level: 1 }).waitFor()
  })

  it('shows the first thousand of very many rows, and the beginning of a long cell', async () => {
    await using opened = await open('pages/rows')
    const { page, problems } = opened
    await page.getByText(`The first 1000 of ${ROWS + 1} rows are shown.`).waitFor()
    expect(await page.locator('main [role="row"]').count()).to.be.below(100)
    await page.goto(`${curated.service.url}/console/pages/cell`)
    const cell = page.getByRole('cell', { name: /^x+…$/ })
    await cell.waitFor()
    expect((await cell.innerText()).length).to.equal(501)
    for (const name of ['toomany', 'toolong']) {
      await page.goto(`${curated.service.url}/console/pages/${name}`)
      await page.getByRole('alert').getByText('TOO_LARGE').waitFor()
    }
    expect(problems).to.deep.equal([])
  })

  it('shows odd answers as text or as an error of their part', async () => {
    await using opened = await open('pages/deep')
    const { page, problems } = opened
    await page.getByRole('alert').getByText('INVALID_ANSWER').waitFor()
    await page.locator('.tile').getByText('[[[').waitFor()
    await page.goto(`${curated.service.url}/console/pages/proto`)
    await page.locator('.tile').nth(3).waitFor()
    expect(await page.locator('.tile-value').allInnerTexts()).to.deep.equal(['–', '–', '–', '–'])
    await page.goto(`${curated.service.url}/console/pages/endless`)
    await page.getByText('Nothing here yet').waitFor()
    expect((await seen()).filter(({ where }) => where === 'endless')).to.have.lengthOf(1)
    expect(problems).to.deep.equal([])
  })

  it('links the error of a route to the log of its request', async () => {
    await using opened = await open('pages/broken')
    const { page } = opened
    const alert = page.getByRole('alert').filter({ hasText: 'INTERNAL_ERROR' })
    await alert.waitFor()
    const again = page.waitForResponse(response => response.url().endsWith('/views/broken'))
    await alert.getByRole('button', { name: 'Try again' }).click()
    const id = (await again).headers()['x-request-id']!
    await alert.getByRole('link', { name: id }).click()
    await page.waitForURL(url => url.pathname === '/console/logs' && url.searchParams.get('request') === id)
  })

  it('does not keep the page busy with texts that are hard to read', async () => {
    await using opened = await open('overview')
    const { page, problems } = opened
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    await page.evaluate(
      `void new PerformanceObserver(list => { window.tasks = [...(window.tasks ?? []), ...list.getEntries().map(task => task.duration)] }).observe({ type: 'longtask' })`
    )
    await page.getByRole('link', { name: 'Nested', exact: true }).click()
    for (const [name, text] of [
      ['Quotes', /^>{9000} end$/],
      ['Brackets', /^\[{9000}$/],
      ['Lists', /^(?:- ){4000} ?end$/],
    ] as const)
      await page.getByRole('region', { name }).getByText(text).waitFor()
    expect(Math.max(0, ...(await page.evaluate<number[]>('window.tasks ?? []')))).to.be.below(5_000)
    expect(problems).to.deep.equal([])
  })

  it('is not drawn if it breaks the rules of views, and sends nothing then', async () => {
    await using opened = await open('overview')
    const { page, requests, problems } = opened
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    const before = requests.length
    for (const [name, [, reason]] of Object.entries(INVALID)) {
      await page.goto(`${curated.service.url}/console/pages/no-${name}`)
      const alert = page.getByRole('alert').filter({ hasText: 'is not valid' })
      await alert.waitFor()
      expect(await alert.innerText(), name).to.match(reason)
    }
    const sent = requests.slice(before).filter(request => !/ \/(console|api\/v1\/(me|events|console\/pages))/.test(request))
    expect(sent).to.deep.equal([])
    expect(problems).to.deep.equal([])
  })

  it('sends a request of a row only if it stays within the declared ones, after the person agrees', async () => {
    await using opened = await open('pages/actions')
    const { page } = opened
    const row = (name: string) => page.getByRole('row').filter({ has: page.getByRole('cell', { name, exact: true }) })
    const before = (await seen()).length
    for (const name of ['Up', 'Slash', 'Empty', 'Object'])
      for (const action of ['Remove', 'Send']) {
        await row(name).getByRole('button', { name: action }).click()
        const dialog = page.getByRole('dialog')
        if (action === 'Send') await dialog.getByText('Really <b>send</b>?').waitFor()
        await dialog.getByRole('button', { name: action }).click()
        await dialog
          .getByRole('alert')
          .getByText(/INVALID_VALUE|FORBIDDEN|NOT_FOUND/)
          .waitFor()
        await dialog.getByRole('button', { name: 'Close' }).click()
        await dialog.waitFor({ state: 'detached' })
      }
    expect((await seen()).slice(before).filter(({ where }) => where !== 'things')).to.deep.equal([])
    await row('Good').getByRole('button', { name: 'Remove' }).click()
    await page.getByRole('dialog').getByText('DELETE /views/things/a').waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    const after = await until(seen, all => all.some(({ where }) => where === 'remove'))
    expect(after.find(({ where }) => where === 'remove')!.params).to.deep.equal({ id: 'a' })
  })

  it('that changes while the server runs is checked again, and gets no more than was agreed to', async () => {
    await using opened = await open('pages/changing')
    const { page } = opened
    await page.locator('.tile-value').getByText('plain').waitFor()
    await writeFile(join(folder, 'console/changing.json'), JSON.stringify(view(stats('GET /notes'))))
    await page.reload()
    await page
      .getByRole('alert')
      .getByText(/permissions\.console/)
      .waitFor()
    await writeFile(join(folder, 'console/changing.json'), JSON.stringify(view(stats('GET /views/plain'))))
    await page.reload()
    await page.locator('.tile-value').getByText('plain').waitFor()
  })

  it('has apps beside it in the same places, which get the id, too', async () => {
    const run = (await (await asked('POST /api/v1/workflows/run', { workflow: 'steps', input: {} })).json()) as {
      workflow_id: string
    }
    await using opened = await open('overview')
    const { page, problems } = opened
    await page.getByRole('region', { name: 'App panel' }).locator('.frame-place:not(.frame-hidden) iframe').waitFor()
    await page.frameLocator('iframe').getByText('{"place":"overview"}').waitFor()
    await page.goto(`${curated.service.url}/console/runs?id=${run.workflow_id}`)
    await page.getByRole('link', { name: 'App of the run' }).click()
    await page
      .frameLocator('iframe')
      .getByText(JSON.stringify({ place: 'run', run: run.workflow_id }))
      .waitFor()
    await page.getByText('From the plugin').waitFor()
    expect(problems).to.deep.equal([])
  })

  it('with the title of a page of the console is shown with the name of its plugin', async () => {
    await using opened = await open('pages/tokens_page')
    const { page } = opened
    await page.getByRole('heading', { name: 'Tokens (svc-plugin-views)', level: 1 }).waitFor()
    await page.getByText('Enter no key or token in it.').waitFor()
    expect(await page.getByRole('link', { name: 'Tokens', exact: true }).count()).to.equal(1)
    await page.getByRole('link', { name: 'Tokens (svc-plugin-views)' }).waitFor()
  })

  it('is a panel on the overview, and a tab of runs and conversations, whose id it gets', async () => {
    const run = (await (await asked('POST /api/v1/workflows/run', { workflow: 'steps', input: {} })).json()) as {
      workflow_id: string
    }
    const content = JSON.stringify({ messages: [{ role: 'user', content: 'Hello' }] })
    const imported = await asked('POST /api/v1/conversations/import', { format: 'chat_completions', content })
    const [talk] = ((await imported.json()) as { conversations: { conversation_id: string }[] }).conversations
    await using opened = await open('overview')
    const { page, problems } = opened
    await page.getByRole('region', { name: 'Panel' }).locator('.tile-value').getByText('plain').waitFor()
    expect(await page.getByRole('link', { name: 'Panel', exact: true }).count()).to.equal(0)
    for (const [path, tab, id] of [
      [`runs?id=${run.workflow_id}`, 'Of the run', run.workflow_id],
      [`conversations?id=${talk!.conversation_id}`, 'Of the talk', talk!.conversation_id],
    ] as const) {
      await page.goto(`${curated.service.url}/console/${path}`)
      await page.getByRole('link', { name: tab, exact: true }).click()
      await page.getByRole('region', { name: tab }).locator('.tile-value').getByText('plain').waitFor()
      await page.getByText('From the plugin').waitFor()
      expect(
        (await seen()).some(({ where, query }) => where === 'plain' && query.id === id),
        tab
      ).to.equal(true)
      await expectAccessible(page, tab)
    }
    expect(problems).to.deep.equal([])
    await page.goto(`${curated.service.url}/console/overview`)
    await page.getByRole('region', { name: 'Panel' }).first().locator('.tile-value').getByText('plain').waitFor()
    // last, because it asks for the style sheets of the app there, which the policy of the app refuses
    await expectAccessible(page, 'the overview with panels')
  })

  for (const theme of ['light', 'dark'] as const)
    for (const width of [360, 1280])
      it(`breaks no rule of accessibility, ${theme}, ${width} wide`, async () => {
        await using opened = await open('pages/texts', { theme, width })
        const { page } = opened
        await page.locator('.chart canvas').waitFor()
        await page.getByLabel('Text', { exact: false }).first().waitFor()
        await page.getByRole('columnheader', { name: 'Name' }).waitFor()
        await expectAccessible(page, 'a view')
        const overflow = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
        expect(overflow).to.be.at.most(0)
      })

  it('is used by keyboard alone', async () => {
    await using opened = await open('pages/form')
    const { page } = opened
    /** Moves with Tab until the element with the focus has this in its text or its label. */
    const tabTo = async (wanted: string) => {
      const focused = () =>
        page.evaluate<string>(
          '(({ labels, textContent }) => [...(labels ?? [])].map(label => label.textContent).join() || textContent)(document.activeElement)'
        )
      for (let left = 20; !(await focused()).startsWith(wanted); left--) {
        expect(left, `Tab leads to ${wanted}`).to.be.above(0)
        await page.keyboard.press('Tab')
      }
    }
    const start = (name: string) => page.getByRole('heading', { name, level: 1 }).focus()
    await page.getByRole('textbox', { name: /^Name/ }).waitFor()
    await page.getByRole('cell', { name: 'Good' }).waitFor()
    await start('Form')
    await tabTo('Name')
    await page.keyboard.type('A thing')
    await page.keyboard.press('Enter')
    await page.getByRole('status').getByText('Done').waitFor()
    const added = (await seen()).findLast(({ where }) => where === 'add')!
    expect(added.body).to.deep.include({ name: 'A thing' })
    expect(await page.getByRole('textbox', { name: /^Name/ }).inputValue()).to.equal('')
    await page.goto(`${curated.service.url}/console/pages/actions`)
    await page.getByRole('cell', { name: 'Good' }).waitFor()
    await start('Actions')
    await tabTo('Remove')
    const before = (await seen()).filter(({ where }) => where === 'remove').length
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').getByText('DELETE /views/things/a').waitFor()
    await tabTo('Remove')
    await page.keyboard.press('Enter')
    await until(seen, all => all.filter(({ where }) => where === 'remove').length > before)
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  })
})
