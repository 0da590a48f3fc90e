import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { describeWith } from '../support/needs.ts'
import { post } from '../support/service.ts'
import { until } from '../support/wait.ts'
import { expectAccessible } from './support/browser.ts'
import { useConsole } from './support/use-console.ts'

const teamOf = (name: string, formation: string) =>
  `name: ${name}\nformation: ${formation}\nmembers:\n  a: { role: Writer, goal: Write, tools: [] }\n  b: { role: Critic, goal: Judge, tools: [] }\n`

describeWith('chromium', 'tables of the console', function () {
  this.timeout(240_000)
  const server = useConsole(async (_ends, home) => ({
    // the server lists the teams of its home and of its working folder, so they differ
    cwd: tmpdir(),
    args: ['--config', join(home, 'svc.config.json')],
    config: { providers: { local: {} } },
    files: {
      'teams/team-10.yaml': teamOf('team-10', 'sequential'),
      'teams/team-9.yaml': teamOf('team-9', 'parallel'),
      'teams/team-1.yaml': teamOf('team-1', 'sequential'),
    },
  }))
  const { open } = server
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
