import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { describeWith } from '../support/needs.ts'
import { until } from '../support/wait.ts'
import { expectAccessible } from './support/browser.ts'
import { FLOWS } from './support/flows.ts'
import { useConsole } from './support/use-console.ts'

const ODD = fileURLToPath(new URL('support/odd-tools.ts', import.meta.url))
/** The text in the editor or in the plain field, and the place of the cursor in it. */
const FOCUSED = `(() => {
  const inner = document.activeElement.shadowRoot?.activeElement ?? document.activeElement
  return { text: inner.value ?? inner.innerText, isEditor: inner.className.includes('cm-content'), label: inner.getAttribute('aria-label') ?? inner.innerText }
})()`
interface Focused {
  readonly text: string
  readonly isEditor: boolean
  readonly label: string
}

describeWith('chromium', 'JSON in the console', function () {
  this.timeout(240_000)
  const server = useConsole({ flows: FLOWS, config: { plugins: [ODD], providers: { local: {} } } })
  const { at, open } = server
  const focused = (page: Page) => page.evaluate<Focused>(FOCUSED)
  const options = (page: Page) => page.locator('.cm-tooltip-autocomplete').getByRole('option')

  it('is completed by the schema of a tool; the keyboard leaves the editor', async () => {
    await using view = await open('tools?id=order')
    const { page, problems } = view
    const json = page.getByRole('textbox', { name: 'Arguments as JSON' })
    await page.locator('.editor-field').waitFor()
    await json.fill('{  }')
    await json.focus()
    await page.keyboard.press('Control+Home')
    for (let time = 0; time < 2; time++) await page.keyboard.press('ArrowRight')
    await page.keyboard.press('Control+Space')
    await options(page).first().waitFor()
    expect(await options(page).allInnerTexts()).to.include('"who"')
    await page.keyboard.press('Escape')
    await options(page).first().waitFor({ state: 'detached' })
    // keys of the page do nothing here: they are text
    await page.keyboard.type('"wh')
    // a key takes no offer that has just appeared
    await options(page).filter({ hasText: '"who"' }).click()
    await page.keyboard.type('{ "name": "g/?"')
    await until(
      () => page.getByLabel('Name', { exact: false }).first().inputValue(),
      name => name === 'g/?'
    )
    await expectAccessible(page, 'JSON of a tool')
    await page.keyboard.press('Escape')
    await page.keyboard.press('Tab')
    expect(await focused(page)).to.include({ isEditor: false, label: 'Call the tool' })
    await page.keyboard.press('Shift+Tab')
    expect((await focused(page)).isEditor).to.equal(true)
    expect(problems).to.deep.equal([])
  })

  it('is a plain field until the editor is loaded, which goes on with its text and cursor', async () => {
    await using view = await open('overview')
    const { page, problems } = view
    const released = Promise.withResolvers<void>()
    await page.route(/\/files\/editor-/, async route => {
      await released.promise
      await route.continue()
    })
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    await page.goto(at('tools?id=order'))
    const field = page.locator('textarea[aria-label="Arguments as JSON"]')
    await field.fill('{ "who": { "name": "Ada" } }')
    await field.press('Home')
    await page.keyboard.press('ArrowRight')
    // the space is replaced
    await page.keyboard.press('Shift+ArrowRight')
    const { height } = (await field.boundingBox())!
    released.resolve()
    await page.locator('.editor-field').waitFor()
    // the button below does not move: a press on it would be lost
    expect((await page.locator('.editor-field').boundingBox())!.height).to.be.closeTo(height, 1)
    await until(
      () => focused(page),
      ({ isEditor }) => isEditor
    )
    await page.keyboard.type(' "pays": {},')
    expect(JSON.parse((await focused(page)).text)).to.deep.equal({ pays: {}, who: { name: 'Ada' } })
    expect(problems).to.deep.equal([])
  })

  it('is completed by the keywords of JSON Schema; an empty field loads the editor at its first use', async () => {
    await using view = await open('playground')
    const { page, problems, requests } = view
    const schema = page.getByRole('textbox', { name: 'JSON Schema of the reply' })
    await schema.waitFor()
    const before = await schema.boundingBox()
    expect(await schema.getAttribute('placeholder')).to.equal('{ "type": "object", … }')
    expect(requests.filter(path => path.includes('/files/editor-'))).to.deep.equal([])
    await schema.focus()
    await page.locator('.editor-field').waitFor()
    expect(await page.locator('.editor-field').boundingBox()).to.deep.equal(before)
    await expectAccessible(page, 'an empty editor')
    await until(
      () => focused(page),
      ({ isEditor }) => isEditor
    )
    await page.keyboard.type('{ "properties": { "name": { "ty')
    await options(page).filter({ hasText: '"type"' }).click()
    await page.keyboard.press('Control+Space')
    await options(page).first().waitFor()
    expect(await options(page).allInnerTexts()).to.include.members(['"object"', '"string"'])
    expect(problems).to.deep.equal([])
  })

  it('is completed in a dialog, which Escape closes only when nothing is offered', async () => {
    await using view = await open('workflows?id=steps')
    const { page, problems } = view
    await page.getByRole('button', { name: 'Start a run' }).first().click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'As JSON' }).click()
    await dialog.locator('.editor-field').waitFor()
    const json = dialog.getByRole('textbox', { name: 'Input as JSON' })
    await json.fill('{ "fails":  }')
    await json.press('ArrowLeft')
    await json.press('ArrowLeft')
    await page.keyboard.press('Control+Space')
    await options(page).first().waitFor()
    expect(await options(page).allInnerTexts()).to.deep.equal(['false', 'true'])
    await page.keyboard.press('Escape')
    await options(page).first().waitFor({ state: 'detached' })
    expect(await dialog.count()).to.equal(1)
    await json.fill('{ "fails": false, "who": "Ada" }')
    await dialog.getByRole('button', { name: 'Start' }).click()
    await page.locator('.bar').getByText('completed').waitFor()
    await page.goto(at('workflows?id=steps'))
    await page.getByRole('button', { name: 'Start a run' }).first().click()
    await dialog.getByRole('button', { name: 'As JSON' }).click()
    await dialog.locator('.editor-field').waitFor()
    await json.focus()
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    expect(problems).to.deep.equal([])
  })
})
