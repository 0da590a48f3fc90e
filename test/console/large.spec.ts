import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { describeWith } from '../support/needs.ts'
import { post } from '../support/service.ts'
import { until } from '../support/wait.ts'
import { expectAccessible } from './support/browser.ts'
import { useConsole } from './support/use-console.ts'

const LARGE = fileURLToPath(new URL('support/large-data.ts', import.meta.url))
const [STEPS, SPANS, MESSAGES] = [20_000, 10_000, 2_000]
/** The budget is 50 ms on an idle machine; the tests share theirs. */
const LONGEST_TASK_MS = 1_000
const DO = 'do: { type: transform, value: "${{ item > 0 ? item : input.none.such }}" }'

describeWith('chromium', 'large records in the console', function () {
  this.timeout(180_000)
  const many = `name: many\ninputs: { type: object, properties: { items: { type: array } } }\nnodes:\n  each: { type: map, over: input.items, ${DO} }\n`
  const server = useConsole({ flows: { many }, config: { plugins: [LARGE], traces: { enabled: true } } })
  const { at, open } = server

  /** Scrolls a box through all of its height, a window at a time where it is short; the longest task of the page. */
  const scrolled = (page: Page, selector: string) =>
    page.evaluate<number>(`(async () => {
      const box = document.querySelector(${JSON.stringify(selector)})
      let most = 0
      new PerformanceObserver(list => { for (const { duration } of list.getEntries()) most = Math.max(most, duration) }).observe({ type: 'longtask' })
      const step = (box.scrollHeight - box.clientHeight) / 60
      for (let i = 0; i < 60; i++) {
        box.scrollTop += step
        await new Promise(resolve => requestAnimationFrame(resolve))
      }
      return most
    })()`)

  it('20,000 steps of a run open, scroll, and are filtered', async () => {
    const { body } = await post(`${server.url}/api/v1/workflows/run`, { workflow: 'many', input: { items: [1, 0] } })
    const small = String(body.workflow_id)
    await until(
      async () => (await fetch(`${server.url}/api/v1/workflows/${small}/status`)).json() as Promise<{ status: string }>,
      ({ status }) => status !== 'running'
    )
    const id = String((await post(`${server.url}/large/run/${small}/${STEPS}`, {})).body.id)
    await using view = await open(`runs?id=${id}`)
    const { page, problems } = view
    const steps = page.getByRole('region', { name: 'Steps of the run' })
    await steps.getByRole('row').nth(5).waitFor()
    await page
      .locator('.steps-head')
      .getByTitle((STEPS + 1).toLocaleString('en'))
      .waitFor()
    expect(await steps.getByRole('row').count()).to.be.lessThan(80)
    expect(await scrolled(page, '.steps .table')).to.be.lessThan(LONGEST_TASK_MS)
    await steps.getByText(`each/${STEPS - 1}/do`, { exact: true }).waitFor()
    expect(await steps.getByRole('row').count()).to.be.lessThan(80)
    await page.getByRole('link', { name: 'Failed' }).click()
    await until(
      () => steps.getByRole('row').count(),
      count => count > 1 && count < 6
    )
    await steps.getByRole('link', { name: `each/${STEPS - 1}/do` }).click()
    await page.getByRole('region', { name: 'The selected step' }).getByText('Input', { exact: true }).waitFor()
    expect(problems).to.deep.equal([])
  })

  it('10,000 spans of a trace open, scroll, and are found by their name and by their address', async () => {
    const { body } = await post(`${server.url}/large/trace/${SPANS}`, {})
    await using view = await open(`traces?id=${String(body.trace)}`)
    const { page, problems } = view
    const spans = page.getByRole('listbox', { name: 'Spans' })
    await spans.getByText('a large request', { exact: true }).waitFor()
    await until(
      () => page.evaluate<number>("document.querySelector('.waterfall').scrollHeight"),
      height => height > SPANS * 20
    )
    expect(await scrolled(page, '.waterfall')).to.be.lessThan(LONGEST_TASK_MS)
    expect(await spans.getByRole('option').count()).to.be.lessThan(80)
    await page.getByLabel('Find spans').fill('span 7777')
    await spans.getByText('span 7777', { exact: true }).click()
    await page.getByRole('region', { name: 'The selected span' }).getByText('7777').last().waitFor()
    await until(
      async () => page.url(),
      url => url.includes('find=span') && url.includes('span=')
    )
    expect(await spans.getByRole('option').count()).to.equal(1)
    await expectAccessible(page, 'a found span')
    // the address of a span shows it among the others
    const address = new URL(page.url())
    address.searchParams.delete('find')
    await page.goto(address.href)
    await spans.getByText('span 7777', { exact: true }).waitFor()
    await spans.focus()
    await page.keyboard.press('ArrowDown')
    await page.getByRole('region', { name: 'The selected span' }).getByRole('heading', { name: 'span 7778' }).waitFor()
    expect(problems).to.deep.equal([])
  })

  it('a conversation of 2,000 messages is continued in the playground, below its messages', async () => {
    const messages = Array.from({ length: MESSAGES / 2 }, (_, i) => [
      { role: 'user', content: `question ${i}` },
      { role: 'assistant', content: `answer **${i}**` },
    ]).flat()
    const { body } = await post(`${server.url}/api/v1/conversations/import`, {
      format: 'chat_completions',
      content: JSON.stringify({ messages }),
    })
    const [{ conversation_id: id }] = body.conversations as [{ conversation_id: string }]
    await using view = await open(`playground?conversation=${id}`)
    const { page, problems } = view
    const chat = page.getByRole('log', { name: 'Chat' })
    await chat.getByText(`question ${MESSAGES / 2 - 1}`, { exact: true }).waitFor()
    expect(await chat.locator('article').count()).to.be.lessThan(60)
    await page.getByLabel('Message', { exact: true }).fill(`/pace 300\n${'new words '.repeat(200)}`)
    await page.keyboard.press('Enter')
    const reply = chat.locator('.turn .message-assistant')
    await reply.getByText(/new words new/).waitFor()
    // loaded again in the middle of the reply: the messages before it, and the reply
    await page.reload()
    await reply.getByText(/new words new/).waitFor()
    await chat.getByText(`question ${MESSAGES / 2 - 1}`, { exact: true }).waitFor({ state: 'attached' })
    await page.getByRole('button', { name: 'Stop' }).click()
    await reply.getByText('stopped', { exact: true }).waitFor()
    const end = () =>
      page.evaluate<number>("(box => box.scrollHeight - box.scrollTop - box.clientHeight)(document.querySelector('.transcript'))")
    await until(end, left => left < 120)
    await page.evaluate("document.querySelector('.transcript').scrollTo(0, 0)")
    await chat.getByText('question 0', { exact: true }).waitFor()
    expect(await chat.locator('article').count()).to.be.lessThan(60)
    // another message: those of before are not repeated
    await page.getByLabel('Message', { exact: true }).fill('The last')
    await page.keyboard.press('Enter')
    await chat.getByText('You said: The last').waitFor()
    expect(await chat.getByText('You said: The last').count()).to.equal(1)
    await expectAccessible(page, 'a continued conversation')
    expect(problems).to.deep.equal([])
  })

  it('says that it loads, and shows the data of before while the server does not answer', async () => {
    await post(`${server.url}/api/v1/chat`, { message: 'Stale' })
    await using view = await open('overview')
    const { page } = view
    const held = Promise.withResolvers<void>()
    await page.route('**/api/v1/conversations?**', async route => {
      await held.promise
      await route.continue()
    })
    await page.goto(at('conversations'))
    const loading = page.getByRole('status', { name: 'Loading' })
    await loading.first().waitFor()
    await loading.first().locator('.skeleton-row').first().waitFor()
    await expectAccessible(page, 'a list that loads')
    held.resolve()
    await page.locator('.list-item').first().waitFor()
    await loading.first().waitFor({ state: 'detached' })
    // the list stays, with its age, when it cannot be read again
    await page.unroute('**/api/v1/conversations?**')
    await page.route('**/api/v1/conversations?**', route =>
      route.fulfill({ status: 500, contentType: 'application/json', body: '{"error":"broken","error_code":"INTERNAL_ERROR"}' })
    )
    await post(`${server.url}/api/v1/chat`, { message: 'Another' })
    await page.getByText(/This is what the server said/).waitFor()
    await page.getByRole('alert').getByText('INTERNAL_ERROR').waitFor()
    await page.locator('.list-item').first().waitFor()
    await page.unroute('**/api/v1/conversations?**')
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByText(/This is what the server said/).waitFor({ state: 'detached' })
  })
})
