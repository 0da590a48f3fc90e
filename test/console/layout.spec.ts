import { expect } from 'chai'
import type { Locator, Page } from 'playwright-core'
import { describeWith } from '../support/needs.ts'
import { post } from '../support/service.ts'
import { until } from '../support/wait.ts'
import { expectAccessible } from './support/browser.ts'
import { FLOWS } from './support/flows.ts'
import { byKeyboard } from './support/keyboard.ts'
import { useConsole } from './support/use-console.ts'

const FOCUSED_NAME =
  "document.activeElement.getAttribute('aria-label') || document.activeElement.textContent.trim() || document.activeElement.tagName"

describeWith('chromium', 'how the console places what is selected', function () {
  this.timeout(120_000)
  const server = useConsole({ config: { providers: { local: {} }, traces: { enabled: true } }, flows: FLOWS })
  const { open } = server
  let conversation: string
  before(async () => {
    const { body } = await post(`${server.url}/api/v1/chat`, { message: '/tool calculate {"expression": "6*7"}' })
    conversation = String(body.conversation_id)
  })
  const focusBecomes = (page: Page, name: string) =>
    until(
      () => page.evaluate<string>(FOCUSED_NAME),
      focused => focused === name
    )

  it('an open workflow takes the place of the list; a button brings it back, and the address keeps it', async () => {
    await using view = await open('workflows')
    const { page, problems } = view
    const list = page.getByRole('list', { name: 'Workflows' })
    const keys = await byKeyboard(page)
    await list.waitFor()
    await keys.activate(/^steps/)
    await list.waitFor({ state: 'hidden' })
    // what had the focus is gone
    await focusBecomes(page, 'steps')
    const button = page.getByRole('button', { name: 'List of workflows' })
    expect(await button.getAttribute('aria-expanded')).to.equal('false')
    await keys.activate('List of workflows')
    await list.waitFor()
    expect(await button.getAttribute('aria-expanded')).to.equal('true')
    expect(await page.evaluate(FOCUSED_NAME)).to.equal('List of workflows')
    await page.reload()
    await list.waitFor()
    await keys.activate('List of workflows')
    await list.waitFor({ state: 'hidden' })
    expect(page.url()).not.to.contain('list=')
    // three columns fit
    await page.setViewportSize({ width: 1680, height: 900 })
    await list.waitFor()
    // the focus is still there
    await keys.press('Enter')
    await list.waitFor({ state: 'hidden' })
    expect(page.url()).to.contain('list=hidden')
    await keys.end()
    expect(problems).to.deep.equal([])
  })

  it('the time stands above the spans and their kinds are in words and colours', async () => {
    const traces = await until(
      async () => (await fetch(`${server.url}/api/v1/traces?q=chat`)).json() as Promise<{ traces: { trace_id: string }[] }>,
      answer => answer.traces.length > 0
    )
    await using view = await open(`traces?id=${traces.traces[0]!.trace_id}`)
    const { page, problems } = view
    const spans = page.getByRole('listbox', { name: 'Spans' })
    await spans.getByText('tool · ').first().waitFor()
    const legend = await page.getByRole('list', { name: 'Kinds of spans' }).getByRole('listitem').allInnerTexts()
    expect(legend).to.include.members(['request', 'turn', 'model', 'tool', 'hook'])
    const root = await boxOf(spans.locator('.span-bar').first())
    const ticks = spans.locator('.span-tick')
    expect((await boxOf(ticks.first())).x, '0 is where the first bar begins').to.be.closeTo(root.x, 1)
    expect(await ticks.first().innerText()).to.equal('0')
    expect(await ticks.nth(1).innerText()).to.match(/^[\d.]+ (µs|ms|s)$/)
    expect((await boxOf(ticks.last())).x, 'the last tick is within the trace').to.be.below(root.x + root.width + 1)
    const axis = spans.locator('.span-axis')
    const before = await boxOf(axis)
    await page.setViewportSize({ width: 1280, height: 560 })
    const scrolled = (expression: string) => page.evaluate<number>(`document.querySelector('.waterfall').${expression}`)
    expect(await scrolled('scrollTop = 150')).to.equal(150)
    expect(await scrolled('scrollTop')).to.be.above(50)
    expect((await boxOf(axis)).y, 'the axis stays when the spans scroll').to.equal(before.y)
    // the focus is never behind the axis
    await spans.focus()
    await page.keyboard.press('End')
    await page.keyboard.press('Home')
    await until(
      () => scrolled('scrollTop'),
      top => top === 0
    )
    await page.emulateMedia({ forcedColors: 'active' })
    const colourOf = (selector: string) =>
      page.evaluate<string>(`getComputedStyle(document.querySelector('${selector}')).backgroundColor`)
    expect(await colourOf('.span-bar'), 'a bar in the colours of the system').not.to.equal(await colourOf('.span-axis'))
    expect(await colourOf('.span-bar')).to.match(/^rgb\(/)
    expect(problems).to.deep.equal([])
  })

  it('what is rarely done with a conversation is in a menu, by keys alone, which gives the focus back', async () => {
    await using view = await open(`conversations?id=${conversation}`)
    const { page, problems } = view
    const keys = await byKeyboard(page)
    const menu = page.getByRole('menu')
    await keys.tabTo('More actions')
    // its code is loaded the first time only
    for (const _time of ['first', 'second']) {
      await keys.press('Enter')
      await menu.waitFor()
      await focusBecomes(page, 'Rename')
      // letters are not keys of the page while a menu is open
      await keys.press('d')
      await focusBecomes(page, 'Delete')
      await keys.press('Escape')
      await menu.waitFor({ state: 'detached' })
      await focusBecomes(page, 'More actions')
    }
    await keys.press('Enter')
    await focusBecomes(page, 'Rename')
    await expectAccessible(page, 'an open menu')
    await keys.press('ArrowDown')
    await focusBecomes(page, 'Export')
    await keys.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Export the conversation' })
    await keys.see(dialog)
    await keys.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    await focusBecomes(page, 'More actions')
    await keys.end()
    expect(problems).to.deep.equal([])
  })

  it('the steps of one reply are one message', async () => {
    await using view = await open(`conversations?id=${conversation}`)
    const { page } = view
    const replies = page.locator('.message-assistant')
    await replies.locator('.tool').waitFor()
    await replies.locator('.markdown').first().waitFor()
    expect(await replies.count()).to.equal(1)
    expect(await page.getByRole('button', { name: 'Fork from here' }).count()).to.equal(1)
  })

  it('an empty list says one thing', async () => {
    await using view = await open('webhooks')
    const { page } = view
    await page.getByText('No webhooks').waitFor()
    expect(await page.locator('.empty').count()).to.equal(1)
    await page.setViewportSize({ width: 360, height: 800 })
    await page.getByText('No webhooks').waitFor()
    expect(await page.locator('.empty').count()).to.equal(1)
  })

  it('a selected item is one column in the middle of a wide window', async () => {
    await using view = await open('tools?id=calculate')
    const { page } = view
    await page.setViewportSize({ width: 2560, height: 1300 })
    await page.getByRole('button', { name: 'Call the tool' }).waitFor()
    const reader = await boxOf(page.locator('.reader'))
    const title = await boxOf(page.getByRole('heading', { name: 'calculate', level: 2 }))
    const form = await boxOf(page.locator('.beside'))
    expect(title.x).to.be.closeTo(form.x, 1)
    expect(form.x - reader.x).to.be.closeTo(reader.x + reader.width - form.x - form.width, 1)
  })
})

async function boxOf(element: Locator) {
  const box = await element.boundingBox()
  if (!box) throw new Error(`${String(element)} is not visible`)
  return box
}
