import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { describeWith } from '../support/needs.ts'
import { post } from '../support/service.ts'
import { workersOf } from '../support/two-workers.ts'
import { until } from '../support/wait.ts'
import { expectAccessible } from './support/browser.ts'
import { FLOWS, writeFlows } from './support/flows.ts'
import { useConsole } from './support/use-console.ts'

const RUNS = '/api/v1/workflows'
/** The engine needs a minute for 20,000: `large.spec.ts` has them from the store. */
const STEPS = 1_000

const TUNED = `name: tuned
inputs: { type: object, properties: { who: { type: string } } }
parameters: { greeting: { type: string, default: hello }, times: { type: integer } }
nodes:
  greet: { type: transform, value: "\${{ parameters.greeting }} \${{ input.who }} \${{ parameters.times }}" }
`

interface Run {
  readonly workflow_id: string
  readonly status: string
}

/** The tutorial: an edge with a label passes two nodes. */
const LABELLED = `name: labelled
nodes:
  check: { type: condition, if: 'true', branches: { true: ask, false: each } }
  ask: { type: human, message: Go on?, branches: { approved: each, rejected: end } }
  each: { type: map, over: input.names, do: { type: transform, value: 1 } }
`
/** The labels of edges, and how far each is from its edge. */
const DISTANCES = `[...document.querySelectorAll('.edge')].filter(edge => edge.querySelector('text')).map(edge => {
  const [path, text] = [edge.querySelector('path'), edge.querySelector('text')]
  const [x, y] = [Number(text.getAttribute('x')), Number(text.getAttribute('y'))]
  const points = Array.from({ length: 400 }, (_, at) => path.getPointAtLength((path.getTotalLength() * at) / 399))
  return { text: text.textContent, distance: Math.min(...points.map(point => Math.hypot(point.x - x, point.y - y))) }
})`
/** The number of nodes that are not whole in the drawing. */
const CUT_OFF = `(() => {
  const all = document.querySelector('.graph').getBoundingClientRect()
  return [...document.querySelectorAll('.graph .node')]
    .map(node => node.getBoundingClientRect())
    .filter(box => box.left < all.left || box.right > all.right || box.top < all.top || box.bottom > all.bottom).length
})()`

describeWith('chromium', 'workflows and runs in the console', function () {
  this.timeout(240_000)
  const server = useConsole({ flows: { ...FLOWS, tuned: TUNED }, config: { traces: { enabled: true } } })
  const { at, open } = server
  const begin = async (workflow: string, input: object = {}) =>
    (await post(`${server.url}${RUNS}/run`, { workflow, input })).body as unknown as Run
  const statusOf = async (id: string) =>
    ((await (await fetch(`${server.url}${RUNS}/${id}/status`)).json()) as Run & { result: unknown }) ?? {}
  /** A run that waits for its question. */
  async function asking(workflow: string): Promise<string> {
    const { workflow_id: id } = await begin(workflow)
    await until(
      async () => (await fetch(`${server.url}${RUNS}/questions?limit=200`)).text(),
      text => text.includes(id)
    )
    return id
  }
  const nodeOf = (page: Page, name: string) => page.locator('.node', { hasText: name }).first()

  it('loads no more than its limits', async () => {
    interface Sizes {
      readonly limits: { readonly first: number; readonly css: number; readonly page: number; readonly editor: number }
      readonly first: number
      readonly css: number
      readonly parts: Readonly<Record<string, number>>
    }
    const { limits, first, css, parts } = JSON.parse(await readFile('plugins/api/console/assets/sizes.json', 'utf8')) as Sizes
    expect(first, 'KiB of the first load').to.be.at.most(limits.first)
    expect(css, 'KiB of CSS').to.be.at.most(limits.css)
    expect(Object.keys(parts)).to.include.members([
      'pages/runs.tsx',
      'pages/workflows.tsx',
      'editor.tsx',
      'graph.tsx',
      'palette.tsx',
      'dialog.tsx',
      'chart.tsx',
      'schema-form.tsx',
    ])
    for (const [name, size] of Object.entries(parts))
      expect(size, `KiB of ${name}`).to.be.at.most(name === 'editor.tsx' ? limits.editor : limits.page)
  })

  it('answers a run from the inbox while its workers are killed, and the open page of the run goes on by itself', async () => {
    const id = await asking('ask')
    await using view = await open(`runs?id=${id}`)
    const { page, context, problems } = view
    await page.locator('.bar').getByText('asks').waitFor()
    await nodeOf(page, 'may').and(page.locator('[data-state="waiting"]')).waitFor()
    const inbox = await context.newPage()
    await inbox.goto(at('inbox'))
    await inbox.locator('.list-item', { hasText: 'May the release go out?' }).first().click()
    await until(
      () => inbox.title(),
      title => /^\(\d+\) Inbox/.test(title)
    )
    for (const pid of await workersOf(server.home)) process.kill(pid, 'SIGKILL')
    await until(
      () => statusOf(id).catch(() => ({ status: 'away' })),
      ({ status }) => status === 'running'
    )
    await inbox.getByRole('button', { name: 'Approve' }).click()
    await until(
      () => statusOf(id).catch(() => ({ status: 'away' })),
      ({ status }) => status === 'completed'
    )
    await page.locator('.bar').getByText('completed').waitFor()
    await nodeOf(page, 'publish').and(page.locator('[data-state="completed"]')).waitFor()
    // the connection breaks while no worker serves
    expect(problems.filter(text => !/ERR_|network|fetch/i.test(text))).to.deep.equal([])
    await inbox.close()
  })

  it('shows a run as it ended, although it ended while the page was reading', async () => {
    const { workflow_id: id } = await begin('waits')
    await using view = await open('overview')
    const { page, problems } = view
    await page.route(`**${RUNS}/${id}/steps?*`, async route => {
      const early = await route.fetch()
      await post(`${server.url}${RUNS}/${id}/events`, { name: 'go', data: {} })
      await until(
        () => statusOf(id),
        ({ status }) => status === 'completed'
      )
      await page.unroute(`**${RUNS}/${id}/steps?*`)
      await route.fulfill({ response: early })
    })
    await page.goto(at(`runs?id=${id}`))
    await page.locator('.bar').getByText('completed').waitFor()
    await nodeOf(page, 'last').and(page.locator('[data-state="completed"]')).waitFor()
    await page.locator('.bar').getByText('3 steps').waitFor()
    expect(problems).to.deep.equal([])
  })

  it('shows the trace of a request with the run that it began: how the run failed, and a way to it', async () => {
    const { workflow_id: id } = await begin('steps', { who: 'Ada', fails: true })
    const { traces } = await until(
      async () =>
        (await (await fetch(`${server.url}/api/v1/traces?run=${id}&status=error`)).json()) as {
          traces: { trace_id: string; error_code: string }[]
        },
      found => found.traces.length > 0
    )
    await using view = await open(`traces?id=${traces[0]!.trace_id}`)
    const { page, problems } = view
    const head = page.locator('.reader > .bar').first()
    await head.getByText('POST /api/v1/workflows/run').waitFor()
    await head.locator('.badge-bad').getByText(traces[0]!.error_code).waitFor()
    await head.getByRole('link', { name: 'Run', exact: true }).click()
    await page.locator('.bar').getByText('failed').first().waitFor()
    expect(page.url()).to.contain(id)
    expect(problems).to.deep.equal([])
  })

  it('starts a run with its input and its parameters', async () => {
    await using view = await open('workflows?id=tuned')
    const { page, problems } = view
    await page.getByRole('button', { name: 'Start a run' }).first().click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('who').fill('Ada')
    await dialog.getByLabel('greeting').fill('salve')
    await dialog.getByLabel('times').fill('3')
    await dialog.getByRole('button', { name: 'Start' }).click()
    await page.locator('.bar').getByText('completed').waitFor()
    const id = new URL(page.url()).searchParams.get('id')!
    expect((await statusOf(id)).result).to.deep.equal({ value: 'salve Ada 3' })
    expect(problems).to.deep.equal([])
  })

  it('answers a question with a form, and with JSON', async () => {
    const [first, second] = [await asking('form'), await asking('form')]
    await using view = await open('inbox?q=report')
    const { page, problems } = view
    for (const [id, isJson] of [
      [first, false],
      [second, true],
    ] as const) {
      await page.goto(at(`inbox?id=${encodeURIComponent(`${id} who`)}`))
      const form = page.getByRole('group', { name: 'Question of who' })
      if (isJson) {
        await form.getByRole('button', { name: 'As JSON' }).click()
        await form.getByLabel('Answer as JSON').fill('{"name": "Ada"}')
      } else {
        await form.getByRole('button', { name: 'Send' }).click()
        await form.getByRole('alert').getByText('INVALID_VALUE').waitFor()
        await form.locator('.problem').first().waitFor()
        await form.getByLabel('Name').fill('Ada')
      }
      await expectAccessible(page, 'a question')
      await form.getByRole('button', { name: 'Send' }).click()
      await until(
        () => statusOf(id),
        ({ status }) => status === 'completed'
      )
      expect((await statusOf(id)).result).to.deep.equal({ value: 'Ada' })
    }
    expect(problems).to.deep.equal([])
  })

  it('retries a failed run from a node that was corrected, and shows its steps with input and output', async () => {
    const { workflow_id: failed } = await begin('steps', { who: 'Ada', fails: true })
    await using view = await open('runs?status=failed')
    const { page, problems } = view
    await page.getByRole('link', { name: 'steps' }).first().click()
    await page.getByRole('heading', { name: 'steps', level: 1 }).waitFor()
    expect(page.url()).to.contain(failed)
    await page.locator('.note-bad').first().waitFor()
    await nodeOf(page, 'broken').click()
    const detail = page.getByRole('region', { name: 'The selected step' })
    await detail.locator('.badge-bad').waitFor()
    expect(page.url()).to.contain('step=broken')
    await page.reload()
    await detail.getByText('Input', { exact: true }).waitFor()
    const file = join(server.home, 'workflows', 'steps.yaml')
    const text = await readFile(file, 'utf8')
    expect(text).to.equal(FLOWS.steps)
    await writeFlows(server.home, { steps: text.replace('${{ input.none.such }}', 'corrected') })
    await detail.getByRole('button', { name: 'Retry from here' }).click()
    const dialog = page.getByRole('dialog', { name: 'Retry from broken' })
    await dialog.getByLabel('Use the current definition').check()
    await expectAccessible(page, 'the dialog of a replay')
    await dialog.getByRole('button', { name: 'Start' }).click()
    await page.locator('.bar').getByText('completed').waitFor()
    expect(page.url()).not.to.contain(failed)
    await page.getByRole('link', { name: 'Input and result' }).click()
    await page.getByLabel('Result', { exact: true }).getByText('hello Ada!').waitFor()
    await writeFlows(server.home, { steps: FLOWS.steps })
    expect(problems).to.deep.equal([])
  })

  it('pauses, resumes, signals, queries and cancels a run', async () => {
    const { workflow_id: id } = await begin('waits')
    await using view = await open(`runs?id=${id}`)
    const { page, problems } = view
    await page.locator('.bar').getByText('waiting').waitFor()
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.locator('.bar').getByText('paused').waitFor()
    await page.getByRole('button', { name: 'Resume' }).click()
    await page.locator('.bar').getByText('waiting').waitFor()
    await page.getByRole('link', { name: 'Signals and queries' }).click()
    await page.getByRole('button', { name: 'Read' }).click()
    await page.getByLabel('Value of seen').getByText('first').waitFor()
    await page.getByLabel('Data').fill('{"by": ')
    await page.getByText(/JSON/).last().waitFor()
    await page.getByLabel('Data').fill('{"by": "hand"}')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.locator('.bar').getByText('completed').waitFor()
    const { workflow_id: other } = await begin('waits')
    await page.goto(at(`runs?id=${other}`))
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    await page.locator('.bar').getByText('cancelled').waitFor()
    expect(problems).to.deep.equal([])
  })

  it('marks a problem of a text in the text and in the drawing, refuses to save it, and saves what is right', async () => {
    await writeFlows(server.home, {
      edited:
        'name: edited # kept\nnodes:\n  one: { type: transform, value: 1, next: two }\n  two: { type: transform, value: 2 }\n',
    })
    await using view = await open('workflows?id=edited')
    const { page, problems } = view
    const editor = page.getByRole('textbox', { name: 'Text of edited' })
    await editor.getByText('two: { type: transform, value: 2 }').click()
    await nodeOf(page, 'two').waitFor()
    await page.keyboard.press('Control+End')
    await page.keyboard.insertText('  three: { type: transform, value: 3, next: nowhere }')
    const found = page.getByRole('list', { name: 'Problems' })
    await found.getByText('nowhere').first().waitFor()
    await page.locator('.node[data-problem]', { hasText: 'three' }).waitFor()
    await page.locator('.cm-lint-marker-error').first().waitFor()
    await expectAccessible(page, 'a text with a problem')
    await page.getByRole('button', { name: 'Save' }).click()
    const refusal = page.getByText('Not saved: the text has problems.')
    await refusal.waitFor()
    expect(await readFile(join(server.home, 'workflows', 'edited.yaml'), 'utf8')).not.to.contain('three')
    await found.getByRole('button').first().click()
    await page.keyboard.press('End')
    await page.keyboard.press('Shift+Home')
    await page.keyboard.insertText('# corrected')
    await refusal.waitFor({ state: 'detached' })
    await page.getByText('valid', { exact: true }).waitFor()
    await page.keyboard.press('Control+s')
    await until(
      () => readFile(join(server.home, 'workflows', 'edited.yaml'), 'utf8'),
      text => text.includes('# corrected')
    )
    expect(await readFile(join(server.home, 'workflows', 'edited.yaml'), 'utf8')).to.contain('# kept')
    expect(problems).to.deep.equal([])
  })

  it('names the folder of a new workflow', async () => {
    await using view = await open('workflows?draft=fresh')
    await view.page.getByText('not saved yet: <svc home>/workflows/fresh.yaml').waitFor()
  })

  it('draws labels on their edges, and fits the drawing again while the text grows', async () => {
    await writeFlows(server.home, { labelled: LABELLED })
    await using view = await open('workflows?id=labelled')
    const { page } = view
    await page.setViewportSize({ width: 1100, height: 800 })
    await nodeOf(page, 'each').waitFor()
    const labels = await page.evaluate<{ text: string; distance: number }[]>(DISTANCES)
    expect(labels.map(({ text }) => text).toSorted()).to.deep.equal(['approved', 'false', 'rejected', 'true'])
    for (const { text, distance } of labels) expect(distance, text).to.be.below(3)
    await page.getByRole('textbox', { name: 'Text of labelled' }).click()
    await page.keyboard.press('Control+End')
    await page.keyboard.insertText(
      Array.from({ length: 12 }, (_, at) => `  n${at}: { type: transform, value: 1, next: n${at + 1} }\n`).join('') +
        '  n12: { type: transform, value: 1 }\n'
    )
    await nodeOf(page, 'n12').waitFor()
    await until(
      () => page.evaluate<number>(CUT_OFF),
      count => count === 0
    )
  })

  it('does not save over what another has saved meanwhile, unless the reader says so', async () => {
    await writeFlows(server.home, { shared: 'name: shared\nnodes:\n  one: { type: transform, value: 1 }\n' })
    await using view = await open('workflows?id=shared')
    const { page } = view
    await page.getByRole('textbox', { name: 'Text of shared' }).click()
    await page.keyboard.press('Control+End')
    await page.keyboard.type('# mine')
    await writeFlows(server.home, { shared: 'name: shared # theirs\nnodes:\n  one: { type: transform, value: 1 }\n' })
    await page.keyboard.press('Control+s')
    await page.getByText('The text was changed elsewhere').waitFor()
    await page.getByRole('button', { name: 'Save over it' }).click()
    await until(
      () => readFile(join(server.home, 'workflows', 'shared.yaml'), 'utf8'),
      text => text.includes('# mine') && !text.includes('# theirs')
    )
  })

  it('starts a run by keys alone, from the list of commands, and answers it', async () => {
    await using view = await open('overview')
    const { page, problems } = view
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    await page.keyboard.press('Control+k')
    await page.getByRole('dialog', { name: 'Commands' }).waitFor()
    await expectAccessible(page, 'the list of commands')
    await page.keyboard.type('workflow ask')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'ask', level: 2 }).waitFor()
    await page.keyboard.press('Control+k')
    await page.keyboard.type('start ask')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'Start ask' }).waitFor()
    await tabTo(page, 'Start')
    await page.keyboard.press('Enter')
    await page.locator('.bar').getByText('asks').waitFor()
    await tabTo(page, 'Approve')
    await page.keyboard.press('Enter')
    await page.locator('.bar').getByText('completed').waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('i')
    await page.getByRole('heading', { name: 'Inbox', level: 1 }).waitFor()
    expect(problems).to.deep.equal([])
  })

  it('shows a run of thousands of steps with few rows in the page, and finds the failed one', async () => {
    const doing = 'do: { type: transform, value: "${{ item > 0 ? item : input.none.such }}" }'
    await writeFlows(server.home, {
      many: `name: many\ninputs: { type: object, properties: { items: { type: array } } }\nnodes:\n  each: { type: map, over: input.items, ${doing} }\n`,
    })
    const items = Array.from({ length: STEPS }, (_, index) => (index === STEPS - 1 ? 0 : index + 1))
    const { workflow_id: id } = await begin('many', { items })
    await until(
      () => statusOf(id),
      ({ status }) => status !== 'running'
    )
    await using view = await open(`runs?id=${id}`)
    const { page, problems } = view
    const steps = page.getByRole('region', { name: 'Steps of the run' })
    await steps.getByRole('row').nth(5).waitFor()
    await page
      .locator('.bar')
      .getByText(/steps$/)
      .waitFor()
    expect(await steps.getByRole('row').count()).to.be.lessThan(80)
    await page.getByRole('link', { name: 'Failed' }).click()
    await until(
      () => steps.getByRole('row').count(),
      count => count > 1 && count < 6
    )
    await page.getByRole('link', { name: 'All', exact: true }).click()
    await page.getByRole('link', { name: 'Newest first' }).click()
    await steps.getByText(new RegExp(`^each/${STEPS - 1}/`)).waitFor()
    expect(problems).to.deep.equal([])
  })
})

/** Moves the focus by Tab to the button of that name. */
async function tabTo(page: Page, name: string): Promise<void> {
  for (let at = 0; at < 80; at++) {
    const text = await page.evaluate<string>("document.activeElement?.textContent ?? ''")
    if (text === name) return
    await page.keyboard.press('Tab')
  }
  throw new Error(`no button ${name} gets the focus`)
}
