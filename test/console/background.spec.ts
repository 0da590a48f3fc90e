import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { describeWith } from '../support/needs.ts'
import { post } from '../support/service.ts'
import { until } from '../support/wait.ts'
import { expectAccessible } from './support/browser.ts'
import { FLOWS } from './support/flows.ts'
import { useConsole } from './support/use-console.ts'

const KINDS = fileURLToPath(new URL('../support/manual-jobs.ts', import.meta.url))
const TEAM = `name: pair
description: Writes and judges
formation: sequential
members:
  first: { role: Writer, goal: Write, tools: [] }
  second: { role: Critic, goal: Judge, tools: [] }
`

describeWith('chromium', 'schedules, jobs, dead letters and teams in the console', function () {
  this.timeout(240_000)
  const server = useConsole({
    flows: FLOWS,
    files: { 'teams/pair.yaml': TEAM },
    config: {
      plugins: [KINDS],
      providers: { local: {} },
      models: { prices: { 'local/local-1': { input: 10_000, output: 10_000 } } },
    },
  })
  const { at, open } = server

  it('adds a schedule, previews its ticks, runs it now, and leads to its job', async () => {
    await using view = await open('schedules')
    const { page, problems } = view
    await page.getByRole('button', { name: 'New schedule' }).click()
    const dialog = page.getByRole('dialog', { name: 'New schedule' })
    await dialog.getByLabel('Name').fill('nightly')
    await dialog.getByLabel('Cron').fill('0 3 * * *')
    await dialog.getByRole('combobox', { name: 'Job', exact: true }).selectOption('manual.echo')
    await dialog.getByRole('button', { name: 'As JSON' }).click()
    await dialog.getByLabel('Input of the job').fill('{"say": "good night"}')
    await dialog.getByRole('button', { name: 'Show next ticks' }).click()
    await dialog.getByRole('list', { name: 'Next ticks' }).getByRole('listitem').nth(4).waitFor()
    await expectAccessible(page, 'a new schedule')
    await dialog.getByRole('button', { name: 'Add' }).click()
    await page.getByRole('heading', { name: 'nightly', level: 2 }).waitFor()
    expect(page.url()).to.contain('id=nightly')
    await page.getByRole('button', { name: 'Run now' }).click()
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.locator('.bar').getByText('paused').waitFor()
    await page.goto(at('jobs?kind=manual.echo'))
    await page.getByRole('link', { name: 'manual.echo' }).first().click()
    await page.locator('.bar').getByText('completed').waitFor()
    await page.getByLabel('Result', { exact: true }).getByText('good night').waitFor()
    await page.getByText('says good night').waitFor()
    await page.goto(at('schedules?id=nightly'))
    await page.getByRole('button', { name: 'Remove' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await page.getByText('No schedules').waitFor()
    expect(problems).to.deep.equal([])
  })

  it('adds a job, follows it, cancels it, and keeps a failed one as a dead letter', async () => {
    await using view = await open('jobs')
    const { page, problems } = view
    const add = async (kind: string) => {
      await page.getByRole('button', { name: 'New job' }).click()
      const dialog = page.getByRole('dialog', { name: 'New job' })
      await dialog.getByLabel('Kind').selectOption(kind)
      await dialog.getByRole('button', { name: 'Add' }).click()
      await page.getByRole('heading', { name: kind, level: 1 }).waitFor()
    }
    await add('manual.wait')
    await page.locator('.bar').getByText('running').waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.locator('.bar').getByText('cancelled').waitFor()
    await page.goto(at('jobs'))
    await add('manual.fail')
    await page.locator('.bar').getByText('failed').waitFor()
    await page.goto(at('dead-letters?tab=jobs'))
    await page.getByRole('link', { name: 'manual.fail' }).first().waitFor()
    expect(problems).to.deep.equal([])
  })

  it('shows failed runs as dead letters, retries one and drops all that match', async () => {
    const failing = async () =>
      post(`${server.url}/api/v1/workflows/run`, { workflow: 'steps', input: { who: 'Ada', fails: true } })
    await failing()
    await failing()
    await using view = await open('dead-letters?workflow=steps')
    const { page, problems } = view
    await page.getByRole('link', { name: 'steps' }).nth(1).waitFor()
    await page.getByRole('link', { name: 'steps' }).first().click()
    await page.getByRole('heading', { name: 'broken', level: 2 }).waitFor()
    await page.getByRole('button', { name: 'Retry' }).click()
    await until(
      async () => page.url(),
      url => url.includes('/console/runs?id=')
    )
    await page.locator('.bar').getByText('failed').waitFor()
    const run = new URL(page.url()).searchParams.get('id')
    const log = await page.locator('.notices').getByRole('link', { name: 'log' }).getAttribute('href')
    expect(new URL(log!, page.url()).searchParams.get('request')).to.equal(run)
    await page.goto(at('dead-letters?workflow=steps'))
    await page.getByRole('button', { name: 'Drop all' }).click()
    const dialog = page.getByRole('dialog', { name: 'Drop all?' })
    await dialog.getByText('2 runs match').waitFor()
    await dialog.getByRole('button', { name: 'Drop 2' }).click()
    await dialog.getByText('2 changed, 0 failed').waitFor()
    await page.keyboard.press('Escape')
    await page.getByText('No run has failed for good').waitFor()
    expect(problems).to.deep.equal([])
  })

  it('runs a team, and shows its members, rounds, messages and costs', async () => {
    await using view = await open('teams')
    const { page, problems } = view
    await page.getByRole('button', { name: 'Run a team' }).click()
    const dialog = page.getByRole('dialog', { name: 'Run a team' })
    await dialog.getByLabel('Team').selectOption('pair')
    await dialog.getByLabel('Task').fill('Say **hello** <img src=x onerror=alert(1)>')
    await dialog.getByRole('button', { name: 'Start' }).click()
    await page.getByRole('heading', { name: 'pair', level: 1 }).waitFor()
    await page.locator('.bar').getByText('completed').waitFor()
    await page.getByRole('region', { name: 'Round 2' }).getByText('second').waitFor()
    expect(await page.locator('.member').count()).to.equal(2)
    expect(await page.locator('.saying img').count()).to.equal(0)
    await page.locator('.member', { hasText: 'first' }).click()
    await until(
      () => page.locator('.saying').count(),
      count => count === 1
    )
    expect(page.url()).to.contain('member=first')
    await page.goto(at('teams?tab=teams'))
    await page.getByRole('link', { name: 'pair', exact: true }).click()
    await page.getByRole('region', { name: 'Members' }).getByText('Critic').waitFor()
    expect(problems).to.deep.equal([])
  })
})
