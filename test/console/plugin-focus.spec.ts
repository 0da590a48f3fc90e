import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import type { Frame, Page } from 'playwright-core'
import { describeWith } from '../support/needs.ts'
import { until } from '../support/wait.ts'
import { expectAccessible } from './support/browser.ts'
import { ALL, frameOf, type HostilePages, moveIntoFrame, openHostilePages, READ } from './support/hostile-page.ts'

/** Sends each key that it gets to its server, which is what a page could do with a token. */
const LISTEN = `
  const field = document.body.appendChild(Object.assign(document.createElement('input'), { id: 'field', ariaLabel: 'Field' }))
  addEventListener('keydown', ({ key }) => parent.postMessage({ jsonrpc: '2.0', id: 'key-' + Math.random(), method: 'svc/request', params: { method: 'POST', path: '/hostile/things', body: { key } } }, '*'))
`
/** In every millisecond. */
const STEAL = 'setInterval(() => { window.focus(); field.focus() }, 1)'
const run = (frame: Frame, script: string) => frame.evaluate(`void setTimeout(() => { ${LISTEN} ${script} })`)

const TAKEN = /took the keyboard focus/
const SENT = 'POST /hostile/things'
const expectStopped = async (page: Page) => {
  await page.getByRole('alert').getByText(TAKEN).waitFor()
  expect(await page.locator('iframe').count()).to.equal(0)
}
const focusHeading = (page: Page) => page.getByRole('heading', { name: 'Hostile', level: 1 }).focus()
/** Waits until it is so in the frame, whose policy does not let the browser ask again by itself. */
const holds = (frame: Frame, what: string) =>
  until(
    () => frame.evaluate<boolean>(what),
    isSo => isSo
  )
/** Also when the frame that gets a key goes away: the browser answers for that key no more. */
const type = async (page: Page, text: string) => {
  for (const key of text) await Promise.race([page.keyboard.press(key).catch(() => {}), sleep(300)])
}
const active = (page: Page) => page.evaluate<string>('document.activeElement.tagName')
const pointAway = (page: Page) => page.mouse.move(5, 790)

describeWith('chromium', 'a hostile page of a plugin that wants the focus', function () {
  this.timeout(120_000)
  let pages: HostilePages
  before(async () => {
    pages = await openHostilePages()
  })
  after(() => pages?.[Symbol.asyncDispose]())

  it('is stopped when it takes it while the reader is elsewhere, and gets no key', async () => {
    const { frame, page, requests, context } = await pages.openPage()
    await pointAway(page)
    await focusHeading(page)
    await run(frame, STEAL)
    await type(page, 'ordinary words')
    await expectStopped(page)
    await until(
      () => active(page),
      tag => tag === 'H1'
    )
    expect(requests).not.to.include(SENT)
    await expectAccessible(page, 'a page that was stopped')
    await page.getByRole('button', { name: 'Try again' }).click()
    await frameOf(page)
    await context.close()
  })

  for (const [what, script] of [
    ['the focus of its window', 'window.focus()'],
    ['the focus of a field', 'field.focus()'],
    ['the selection of a text', 'field.value = "x"; field.select()'],
    [
      'a click on a label',
      `const label = document.body.appendChild(document.createElement('label')); label.htmlFor = 'field'; label.click()`,
    ],
    ['its address', `location.hash = '#field'`],
    [
      'a dialog',
      `const dialog = document.body.appendChild(document.createElement('dialog')); dialog.append(field); dialog.showModal()`,
    ],
    ['a popover', `field.autofocus = true; field.popover = 'manual'; field.showPopover()`],
    [
      'a field that wants the focus',
      `const one = document.createElement('input'); one.autofocus = true; document.body.append(one)`,
    ],
    [
      'a selection',
      `getSelection().selectAllChildren(document.body); document.body.contentEditable = 'true'; document.body.focus()`,
    ],
  ] as const)
    it(`is stopped, or has not got it, by ${what}`, async () => {
      const { frame, page, requests, context } = await pages.openPage('hostile', READ)
      await pointAway(page)
      await focusHeading(page)
      await run(frame, script)
      await sleep(300)
      await type(page, 'ordinary words')
      expect(await active(page)).to.equal('H1')
      expect(requests.filter(request => request === SENT)).to.deep.equal([])
      await context.close()
    })

  it('is stopped also where the pointer rests over it, but the reader uses the keys of the console', async () => {
    const { frame, page, requests, context } = await pages.openPage()
    await moveIntoFrame(page)
    await focusHeading(page)
    await page.keyboard.press('t')
    await run(frame, STEAL)
    await type(page, 'ordinary words')
    await expectStopped(page)
    expect(requests).not.to.include(SENT)
    await context.close()
  })

  it('is not there while the list of commands is open, and begins again with what it has kept', async () => {
    const { frame, page, requests, context } = await pages.openPage()
    await frame.evaluate(`svc.keep({ draft: 'half a sentence' })`)
    await focusHeading(page)
    await page.keyboard.press('Control+k')
    const commands = page.getByPlaceholder('Go to, start, search …')
    await commands.waitFor()
    expect(await page.locator('iframe').count()).to.equal(0)
    await moveOver(page)
    await page.keyboard.type('overview', { delay: 20 })
    expect(await commands.inputValue()).to.equal('overview')
    await page.keyboard.press('Escape')
    const again = await frameOf(page)
    expect(await again.evaluate('svc.kept()')).to.deep.equal({ draft: 'half a sentence' })
    expect(requests).not.to.include(SENT)
    await context.close()
  })

  it('gets nothing of what is typed after the reader leaves it for a dialog', async () => {
    const { frame, page, requests, context } = await pages.openPage()
    // the reader is in the page, so the page may have the focus
    await moveIntoFrame(page)
    await frame.click('h1')
    await run(frame, STEAL)
    await holds(frame, 'document.activeElement.id === "field"')
    await page.keyboard.type('in the page')
    await until(
      async () => requests.filter(request => request === SENT).length,
      count => count > 0
    )
    expect(await page.getByRole('alert').count()).to.equal(0)
    await page.getByRole('button', { name: /^Commands/ }).click()
    const commands = page.getByPlaceholder('Go to, start, search …')
    await commands.waitFor()
    expect(await page.locator('iframe').count()).to.equal(0)
    const before = requests.length
    await page.keyboard.type('overview', { delay: 20 })
    expect(await commands.inputValue()).to.equal('overview')
    expect(requests.slice(before)).not.to.include(SENT)
    await context.close()
  })

  it('is not there while the reader signs in again, even if it had the focus', async () => {
    const { token, revoke } = await pages.service.person(ALL.split(','))
    const { frame, page, requests, context } = await pages.openPage('hostile', ALL, undefined, token)
    await moveIntoFrame(page)
    await frame.click('h1')
    await run(frame, STEAL)
    await revoke()
    // its next request says that the session is over, if no other has said so and unloaded the frame
    await frame.evaluate(`void svc.request('GET', '/hostile/things').catch(() => {})`).catch(() => undefined)
    const field = page.getByRole('dialog').getByLabel('Key or token')
    await field.waitFor()
    expect(await page.locator('iframe').count()).to.equal(0)
    const before = requests.length
    const next = await pages.service.person(ALL.split(','))
    await until(
      () => active(page),
      tag => tag === 'INPUT'
    )
    await page.keyboard.type(next.token)
    expect(await field.inputValue()).to.equal(next.token)
    await page.keyboard.press('Enter')
    await frameOf(page)
    expect(requests.slice(before)).not.to.include(SENT)
    await context.close()
  })

  it('is not there while the menu of a narrow window is open, and while the keys are shown', async () => {
    const { page, context } = await pages.openPage('hostile', READ, 360)
    await page.getByRole('button', { name: 'Menu' }).click()
    expect(await page.locator('iframe').count()).to.equal(0)
    await page.getByRole('button', { name: 'Menu' }).click()
    await frameOf(page)
    await focusHeading(page)
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keys' }).waitFor()
    expect(await page.locator('iframe').count()).to.equal(0)
    await page.keyboard.press('Escape')
    await frameOf(page)
    await context.close()
  })

  it('has it when the reader goes into the page: with the pointer, with Tab in both directions, with the button', async () => {
    const { frame, page, context } = await pages.openPage('honest', READ)
    await frame.evaluate(
      `void document.body.append(Object.assign(document.createElement('input'), { id: 'field', ariaLabel: 'Field' }))`
    )
    const typed = () => frame.inputValue('#field')
    await page.getByRole('button', { name: 'Go into the page' }).focus()
    await page.keyboard.press('Enter')
    await until(
      () => active(page),
      tag => tag === 'IFRAME'
    )
    await page.keyboard.press('Tab')
    await holds(frame, FIELD_HAS_FOCUS)
    await page.keyboard.type('button ')
    await until(typed, text => text.endsWith('button '))
    await moveIntoFrame(page)
    await frame.click('#field')
    await page.keyboard.type('pointer ')
    await until(typed, text => text.endsWith('pointer '))
    await page.getByRole('heading', { name: 'Honest', level: 1 }).focus()
    await pointAway(page)
    await page.keyboard.press('Tab')
    await until(
      () => page.evaluate<string>('document.activeElement.textContent'),
      text => text === 'Go into the page'
    )
    await page.keyboard.press('Tab')
    await holds(frame, FIELD_HAS_FOCUS)
    await page.keyboard.type('tab ')
    await until(typed, text => text.endsWith('tab '))
    const back = page.getByRole('button', { name: 'Back to the title' })
    await back.focus()
    await page.keyboard.press('Shift+Tab')
    await holds(frame, FIELD_HAS_FOCUS)
    await page.keyboard.type('back ')
    await until(typed, text => text.endsWith('back '))
    expect(await page.getByRole('alert').count()).to.equal(0)
    await context.close()
  })
})

const FIELD_HAS_FOCUS = 'document.hasFocus() && document.activeElement.id === "field"'

/** The pointer of the reader moves over the place of the frame. */
const moveOver = async (page: Page) => {
  await page.mouse.move(900, 500)
  await page.mouse.move(910, 510)
}
