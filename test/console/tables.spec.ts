import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { describeWith } from '../support/needs.ts'
import { post } from '../support/service.ts'
import { until } from '../support/wait.ts'
import { expectAccessible } from './support/browser.ts'
import { FLOWS } from './support/flows.ts'
import { useConsole } from './support/use-console.ts'
import { writeViewPlugin } from './support/view-plugins.ts'

const teamOf = (name: string, formation: string) =>
  `name: ${name}\nformation: ${formation}\nmembers:\n  a: { role: Writer, goal: Write, tools: [] }\n  b: { role: Critic, goal: Judge, tools: [] }\n`

const COLUMNS = [
  { title: 'Name', value: 'name' },
  { title: '-Size', value: 'size', format: 'number' },
]
const table = (title: string) => ({ type: 'table', title, request: 'GET /views/things', items: 'things', columns: COLUMNS })
const view = { parts: [table('First'), table('Second')] }
/** Each place of a view as data. */
const viewPlugin = (home: string) =>
  writeViewPlugin(home, {
    name: 'views',
    rights: ['GET /views/*'],
    pages: {
      things: { title: 'Things', view },
      panel: { title: 'Panel', view, place: 'overview' },
      of_run: { title: 'Of the run', view, place: 'run' },
      of_talk: { title: 'Of the talk', view, place: 'conversation' },
    },
    answers: { things: JSON.stringify({ things: [10, 9, 1].map(size => ({ name: `thing-${size}`, size })) }) },
  })

describeWith('chromium', 'tables of the console', function () {
  this.timeout(240_000)
  const server = useConsole(async (_ends, home) => ({
    // the server lists the teams of its home and of its working folder, so they differ
    cwd: tmpdir(),
    args: ['--config', join(home, 'svc.config.json')],
    config: { plugins: [await viewPlugin(home)], providers: { local: {} } },
    flows: { steps: FLOWS.steps },
    files: {
      'teams/team-10.yaml': teamOf('team-10', 'sequential'),
      'teams/team-9.yaml': teamOf('team-9', 'parallel'),
      'teams/team-1.yaml': teamOf('team-1', 'sequential'),
    },
  }))
  const { at, open } = server
  /** The teams of this test, in the order of the table. */
  const first = async (page: Page) => {
    const names = await page.locator('.table-body .table-link').allInnerTexts()
    return names.filter(name => name.startsWith('team-'))
  }
  const becomes = async (read: () => Promise<string[]>, wanted: readonly string[]) => {
    const end = Date.now() + 5_000
    await until(read, found => found.join() === wanted.join() || Date.now() > end)
    expect(await read()).to.deep.equal(wanted)
  }
  const shown = (page: Page, wanted: readonly string[]) => becomes(() => first(page), wanted)

  it('are sorted by a column: one way, the other, and as before; the address has the order', async () => {
    await using view = await open('teams?tab=teams')
    const { page, problems } = view
    await page.getByRole('cell', { name: 'team-10', exact: true }).first().waitFor()
    const before = await first(page)
    const column = page.getByRole('columnheader', { name: 'Team', exact: true })
    expect(await column.getAttribute('aria-sort')).to.equal(null)
    await column.getByRole('button').focus()
    await page.keyboard.press('Enter')
    await shown(page, ['team-1', 'team-9', 'team-10'])
    expect(await column.getAttribute('aria-sort')).to.equal('ascending')
    await expectAccessible(page, 'a sorted table')
    await page.keyboard.press('Enter')
    await shown(page, ['team-10', 'team-9', 'team-1'])
    expect(new URL(page.url()).searchParams.get('sort')).to.equal('-Team')
    await page.reload()
    await shown(page, ['team-10', 'team-9', 'team-1'])
    expect(await column.getAttribute('aria-sort')).to.equal('descending')
    await column.getByRole('button').click()
    await shown(page, before)
    expect(page.url()).not.to.contain('sort=')
    expect(await page.getByRole('columnheader', { name: 'About' }).getByRole('button').count()).to.equal(0)
    expect(problems).to.deep.equal([])
  })

  it('of versions of a workflow keep their order in the address', async () => {
    await post(`${server.url}/api/v1/workflows/run`, { workflow: 'steps', input: {} })
    await using opened = await open('workflows?id=steps&tab=versions')
    const { page, problems } = opened
    const column = page.getByRole('columnheader', { name: 'Open runs' })
    await column.getByRole('button').click()
    await until(
      async () => new URL(page.url()).searchParams.get('sort'),
      sort => sort === '-Open runs'
    )
    await page.reload()
    await column.waitFor()
    expect(await column.getAttribute('aria-sort')).to.equal('descending')
    expect(problems).to.deep.equal([])
  })

  it('of views of plugins keep their order in the address, each its own, in each place of a view', async () => {
    await using opened = await open('pages/things')
    const { page, problems } = opened
    const names = (title: string) => async () =>
      (await page.getByRole('region', { name: title }).last().locator('.table-body').getByRole('cell').allInnerTexts()).filter(
        text => text.startsWith('thing-')
      )
    const sort = (title: string, column: string) =>
      page.getByRole('region', { name: title }).last().getByRole('button', { name: column, exact: true }).click()
    await becomes(names('First'), ['thing-10', 'thing-9', 'thing-1'])
    await sort('First', 'Name')
    await becomes(names('First'), ['thing-1', 'thing-9', 'thing-10'])
    // the sign of the title is none of the order
    await sort('Second', '-Size')
    await sort('Second', '-Size')
    await becomes(names('Second'), ['thing-1', 'thing-9', 'thing-10'])
    await sort('First', 'Name')
    await until(
      async () => page.url(),
      url => url.includes('sort.things.0=-Name')
    )
    await page.reload()
    await becomes(names('First'), ['thing-10', 'thing-9', 'thing-1'])
    await becomes(names('Second'), ['thing-1', 'thing-9', 'thing-10'])
    const { body } = await post(`${server.url}/api/v1/workflows/run`, { workflow: 'steps', input: {} })
    const talk = await post(`${server.url}/api/v1/chat`, { message: 'Hello' })
    for (const [path, name] of [
      ['overview?', 'panel'],
      [`runs?id=${String(body.workflow_id)}&tab=page.of_run&`, 'of_run'],
      [`conversations?id=${String(talk.body.conversation_id)}&tab=page.of_talk&`, 'of_talk'],
    ] as const) {
      await page.goto(at(`${path}sort.${name}.1=Name`))
      await becomes(names('Second'), ['thing-1', 'thing-9', 'thing-10'])
      await becomes(names('First'), ['thing-10', 'thing-9', 'thing-1'])
    }
    expect(problems).to.deep.equal([])
  })

  it('and lists are moved through with arrow keys, Home and End; Enter opens what has the focus', async () => {
    await using opened = await open('teams?tab=teams')
    const { page, problems } = opened
    await page.getByRole('cell', { name: 'team-10', exact: true }).first().waitFor()
    const focused = () => page.evaluate<string>('document.activeElement.textContent')
    /** Presses a key, and wants this element to have the focus then. */
    const moves = async (key: string, wanted: string) => {
      await page.keyboard.press(key)
      expect(await focused(), key).to.equal(wanted)
    }
    const rows = await page.locator('.table-body .table-link').allInnerTexts()
    await page.locator('.table').focus()
    // the titles of columns by which it can be sorted come first
    await page.keyboard.press('Home')
    expect(await page.evaluate('document.activeElement.className')).to.equal('order-button')
    await moves('End', rows.at(-1)!)
    await moves('ArrowDown', rows.at(-1)!)
    await moves('ArrowUp', rows.at(-2)!)
    await moves('ArrowDown', rows.at(-1)!)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: rows.at(-1)!, level: 1 }).waitFor()

    await page.goto(at('workflows'))
    const items = page.getByRole('list', { name: 'Workflows' }).locator('.list-item')
    await items.nth(2).waitFor()
    const texts = await items.allTextContents()
    await items.first().focus()
    await moves('ArrowDown', texts[1]!)
    await moves('ArrowDown', texts[2]!)
    await moves('ArrowUp', texts[1]!)
    await moves('End', texts.at(-1)!)
    await moves('Home', texts[0]!)
    await moves('ArrowUp', texts[0]!)
    await moves('ArrowDown', texts[1]!)
    const name = await items.nth(1).locator('.list-name').innerText()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name, level: 2 }).waitFor()
    expect(new URL(page.url()).searchParams.get('id')).to.equal(name)
    expect(problems).to.deep.equal([])
  })

  it('are sorted by numbers, highest first, with the sums below', async () => {
    for (const [model, count] of [
      ['local-1', 1],
      ['local-small', 12],
    ] as const)
      for (let time = 0; time < count; time++) await post(`${server.url}/api/v1/chat`, { message: 'Hello', model })
    await using view = await open('usage?by=model')
    const { page, problems } = view
    const table = page.getByRole('region', { name: 'Usage' })
    const names = () => table.locator('tbody').getByRole('rowheader').allInnerTexts()
    const calls = table.getByRole('columnheader', { name: 'Calls' })
    await calls.getByRole('button').click()
    await becomes(names, ['local/local-small', 'local/local-1'])
    await calls.getByRole('button').click()
    await becomes(names, ['local/local-1', 'local/local-small'])
    expect(await calls.getAttribute('aria-sort')).to.equal('ascending')
    await table.locator('tfoot').getByRole('rowheader', { name: 'total' }).waitFor()
    expect(problems).to.deep.equal([])
  })

  it('have fewer columns in a narrow window, and all again in a wide one', async () => {
    await using view = await open('teams?tab=teams', { width: 360 })
    const { page } = view
    const heads = () => page.getByRole('columnheader').allInnerTexts()
    await page.getByRole('cell', { name: 'team-10', exact: true }).first().waitFor()
    expect(await heads()).to.deep.equal(['Team', 'Formation', 'Problems'])
    expect(await page.evaluate('document.documentElement.scrollWidth > innerWidth')).to.equal(false)
    await page.setViewportSize({ width: 1280, height: 800 })
    await becomes(heads, ['Team', 'Formation', 'Members', 'About', 'Problems'])
  })
})
