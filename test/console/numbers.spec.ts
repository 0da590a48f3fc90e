import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { describeWith } from '../support/needs.ts'
import { post } from '../support/service.ts'
import { FLOWS } from './support/flows.ts'
import { useConsole } from './support/use-console.ts'

const TEAM = `name: pair
formation: sequential
members:
  first: { role: Writer, goal: Write, tools: [] }
  second: { role: Critic, goal: Judge, tools: [] }
`
const MODELS = [
  { id: 'local-1', context: 1_048_576, output: 4096 },
  { id: 'local-small', context: 8192, output: 1024 },
  { id: 'local-free', context: 4096, output: 512 },
]
/** Of one with whole numbers and one with fractions; the third has none. */
const PRICES = { 'local/local-1': { input: 10_000, output: 3 }, 'local/local-small': { input: 0.25, output: 12.505 } }

/** A text in a cell: where it begins and ends, and where its points are. */
interface Place {
  readonly text: string
  readonly left: number
  readonly right: number
  readonly points: readonly number[]
}

interface Column {
  /** Where the text of the title ends. */
  readonly end: number
  readonly cells: readonly Place[]
}

/** The columns by their titles. */
const COLUMNS = `(() => {
  const rowsOf = (table, head) => [...table.querySelectorAll('tr, [role="row"]')].filter(row => Boolean(row.closest('thead, .table-head')) === head)
  const boxOf = (node, from, to) => {
    const range = document.createRange()
    range.selectNodeContents(node)
    if (from !== undefined) { range.setStart(node, from); range.setEnd(node, to) }
    return range.getBoundingClientRect()
  }
  const pointsIn = cell => {
    const found = []
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT)
    for (let text = texts.nextNode(); text; text = texts.nextNode())
      for (const { index } of text.data.matchAll(/\\./g)) found.push(boxOf(text, index, index + 1).left)
    return found
  }
  const endOf = title => {
    const texts = document.createTreeWalker(title, NodeFilter.SHOW_TEXT)
    const ends = []
    for (let text = texts.nextNode(); text; text = texts.nextNode())
      if (!text.parentElement.closest('[aria-hidden]')) ends.push(boxOf(text).right)
    return Math.max(...ends)
  }
  const columns = {}
  for (const table of document.querySelectorAll('main table, main [role="table"]'))
    for (const row of rowsOf(table, false))
      [...row.children].forEach((cell, at) => {
        const { left, right } = boxOf(cell)
        const title = rowsOf(table, true)[0].children[at]
        const { cells } = (columns[title.innerText.trim()] ??= { end: endOf(title), cells: [] })
        cells.push({ text: cell.innerText, left, right, points: pointsIn(cell) })
      })
  return columns
})()`

const PIXEL = 1
const spread = (values: readonly number[]) => Math.max(...values) - Math.min(...values)

describeWith('chromium', 'numbers in columns of the console', function () {
  this.timeout(120_000)
  const server = useConsole({
    flows: FLOWS,
    config: { providers: { local: { models: MODELS } }, models: { prices: PRICES, currency: 'EUR' } },
    files: { 'teams/pair.yaml': TEAM },
  })
  before(async () => {
    const send = async (path: string, body: object) => {
      const answer = await fetch(`${server.url}/api/v1/${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      expect(answer.status, await answer.text()).to.be.below(300)
    }
    for (let time = 0; time < 12; time++) await post(`${server.url}/api/v1/chat`, { message: 'Hello', model: 'local-1' })
    for (const model of ['local-small', 'local-free']) await send('chat', { message: 'Hello, you. '.repeat(40), model })
    await send('workflows/run', { workflow: 'steps', input: { who: 'Ada' } })
    await send('workflows/run', { workflow: 'ask', input: {} })
    for (const task of ['Say hello', 'Say good morning to everybody. '.repeat(200)]) await send('teams/pair/run', { task })
  })

  /** The cells of the columns with these titles, each with several texts that end where the title ends. */
  async function aligned(page: Page, titles: readonly string[]): Promise<readonly (readonly Place[])[]> {
    await page.locator('main [role="row"], main tr').nth(2).waitFor()
    await page.locator('.skeleton').first().waitFor({ state: 'detached' })
    const columns = await page.evaluate<Readonly<Record<string, Column>>>(COLUMNS)
    return titles.map(title => {
      const column = columns[title]
      if (column === undefined) throw new Error(`no column ${title}, only ${Object.keys(columns).join(', ')}`)
      const { end, cells } = column
      expect(cells.length, `rows of ${title}`).to.be.above(1)
      const places = cells.map(({ text, right }) => `${text} ends at ${right}`).join('; ')
      const ends = [end, ...cells.map(({ right }) => right)]
      expect(spread(ends), `${title} ends at ${end}; ${places}`).to.be.at.most(PIXEL)
      return cells
    })
  }
  /** Texts of the same width would end at the same place in a column that is aligned to the left. */
  const expectWidths = (cells: readonly Place[]) =>
    expect(spread(cells.map(({ left }) => left)), cells.map(({ text }) => text).join('; ')).to.be.above(PIXEL)

  it('end at the same place: runs', async () => {
    await using view = await server.open('runs')
    await view.page.getByText('completed', { exact: true }).first().waitFor()
    const [durations] = await aligned(view.page, ['Duration'])
    expectWidths(durations!)
  })

  it('end at the same place: teams', async () => {
    await using view = await server.open('teams')
    const [, tokens, costs] = await aligned(view.page, ['Rounds', 'Tokens', 'Cost'])
    expectWidths(tokens!)
    expectWidths(costs!)
  })

  it('end at the same place, sums and costs at their point: usage', async () => {
    await using view = await server.open('usage?by=model')
    const names = ['Requests', 'Errors', 'Calls', 'Failed', 'Tokens in', 'Tokens out', 'Cached', 'Cost, EUR']
    const columns = await aligned(view.page, names)
    expectWidths(columns[2]!)
    expectWidths(columns[4]!)
    const costs = columns.at(-1)!
    expectWidths(costs)
    const points = costs.flatMap(cell => cell.points)
    expect(points.length).to.be.above(1)
    expect(spread(points), costs.map(({ text }) => text).join('; ')).to.be.at.most(PIXEL)
  })

  it('end at the same place, prices at both of their points: providers', async () => {
    await using view = await server.open('providers?id=local')
    const names = ['Calls', 'Failed', 'First token', 'Context', 'Price in / out, EUR']
    const [, , , contexts, prices] = await aligned(view.page, names)
    expectWidths(contexts!)
    const priced = prices!.filter(({ text }) => text !== '–')
    expect(priced.map(({ points }) => points.length)).to.deep.equal([2, 2])
    for (const at of [0, 1])
      expect(spread(priced.map(({ points }) => points[at]!)), priced.map(({ text }) => text).join('; ')).to.be.at.most(PIXEL)
  })
})
