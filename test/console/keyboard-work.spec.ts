import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { describeWith } from '../support/needs.ts'
import { post } from '../support/service.ts'
import { workersOf } from '../support/two-workers.ts'
import { until } from '../support/wait.ts'
import { FLOWS, writeFlows } from './support/flows.ts'
import { byKeyboard } from './support/keyboard.ts'
import { useConsole } from './support/use-console.ts'

const RUNS = '/api/v1/workflows'

describeWith('chromium', 'workflows and runs in the console, by keys alone', function () {
  this.timeout(120_000)
  const server = useConsole({ flows: FLOWS })
  const { open } = server
  const begin = async (workflow: string, input: object = {}) =>
    String((await post(`${server.url}${RUNS}/run`, { workflow, input })).body.workflow_id)
  const statusOf = async (id: string) =>
    String(((await (await fetch(`${server.url}${RUNS}/${id}/status`)).json()) as { status: string }).status)

  it('a run is answered from the inbox, while its worker is killed and its page is open', async () => {
    const id = await begin('ask')
    await until(
      async () => (await fetch(`${server.url}${RUNS}/questions`)).text(),
      text => text.includes(id)
    )
    await using run = await open(`runs?id=${id}`)
    await run.page.locator('.bar').getByText('asks').waitFor()
    await using view = await open('overview')
    const { page } = view
    const keys = await byKeyboard(page)
    await keys.go('i', 'Inbox')
    await keys.activate(/May the release go out/)
    await keys.see(page.getByRole('group', { name: 'Question of may' }))
    for (const pid of await workersOf(server.home)) process.kill(pid, 'SIGKILL')
    await until(
      () => statusOf(id).catch(() => 'away'),
      status => status === 'running'
    )
    await keys.activate('Approve')
    await run.page.locator('.bar').getByText('completed').waitFor()
    await keys.end()
  })

  it('a failed run is retried from a node that was corrected', async () => {
    const failed = await begin('steps', { who: 'Ada', fails: true })
    await using view = await open('overview')
    const { page, problems } = view
    const keys = await byKeyboard(page)
    await keys.go('r', 'Runs')
    await keys.activate('Failed')
    await keys.activate(/^steps/)
    await keys.see(page.getByRole('heading', { name: 'steps', level: 1 }))
    expect(page.url()).to.contain(failed)
    // a node of the drawing, then the button beside it
    await keys.see(page.locator('.node', { hasText: 'broken' }).first())
    await keys.activate(/^broken, transform/)
    await keys.see(page.getByRole('region', { name: 'The selected step' }).locator('.badge-bad'))
    await writeFlows(server.home, { steps: FLOWS.steps.replace('${{ input.none.such }}', 'corrected') })
    await keys.activate('Retry from here')
    await keys.see(page.getByRole('dialog', { name: 'Retry from broken' }))
    await keys.tabTo(/^Use the current definition/)
    await keys.press('Space')
    await keys.activate('Start')
    await keys.see(page.locator('.bar').getByText('completed'))
    expect(page.url()).not.to.contain(failed)
    await writeFlows(server.home, { steps: FLOWS.steps })
    await keys.end()
    expect(problems).to.deep.equal([])
  })

  it('a text with a problem is marked, not saved, and saved when it is corrected', async () => {
    const file = join(server.home, 'workflows', 'edited.yaml')
    await writeFlows(server.home, { edited: 'name: edited\nnodes:\n  one: { type: transform, value: 1 }\n' })
    await using view = await open('overview')
    const { page, problems } = view
    const keys = await byKeyboard(page)
    await keys.go('w', 'Workflows')
    await keys.activate(/^edited/)
    await keys.see(page.locator('.node', { hasText: 'one' }).first())
    await keys.tabTo('Text of edited')
    await keys.press('Control+End')
    await keys.type('  two: { type: transform, value: 2, next: nowhere')
    const found = page.getByRole('list', { name: 'Problems' })
    await keys.see(found.getByText('nowhere').first())
    await keys.see(page.locator('.node[data-problem]', { hasText: 'two' }))
    await keys.activate('Save')
    await keys.see(page.getByRole('alert').getByText('Not saved: the text has problems'))
    expect(await readFile(file, 'utf8')).not.to.contain('nowhere')
    // the problem leads to its line
    await keys.activate(/nowhere/)
    await keys.press('End', 'Shift+Home')
    await keys.type('# corrected')
    await keys.see(page.getByText('valid', { exact: true }))
    await keys.press('Control+s')
    await until(
      () => readFile(file, 'utf8'),
      text => text.includes('# corrected')
    )
    await keys.end()
    expect(problems).to.deep.equal([])
  })
})
