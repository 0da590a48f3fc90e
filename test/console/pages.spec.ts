import { expect } from 'chai'
import { runSvc } from '../support/command.ts'
import { describeWith } from '../support/needs.ts'
import { post, startService } from '../support/service.ts'
import { until } from '../support/wait.ts'
import { openConsole } from './support/browser.ts'
import { useConsole } from './support/use-console.ts'

describeWith('chromium', 'the pages of the console', function () {
  this.timeout(60_000)
  const server = useConsole()
  const { open } = server

  it('shows the spans of a trace as a tree, with their plugins, and keeps the selection in the address', async () => {
    await using traced = await startService({ env: { SVC_TRACES__ENABLED: 'true' } })
    await post(`${traced.url}/api/v1/chat`, { message: '/tool calculate {"expression": "6*7"}' })
    await post(`${traced.url}/api/v1/chat`, { message: '/fail overloaded' })
    await until(
      async () => (await fetch(`${traced.url}/api/v1/traces?status=error`)).text(),
      text => text.includes('POST /api/v1/chat')
    )
    await using view = await openConsole(server.browser, `${traced.url}/console/traces?status=error`)
    const { page, problems } = view
    await page.locator('.list-item').first().click()
    const spans = page.getByRole('listbox', { name: 'Spans' })
    await spans.getByRole('option').nth(3).waitFor()
    expect(await page.locator('.list-item').count()).to.equal(1)
    await page.getByRole('link', { name: 'All', exact: true }).click()
    await until(
      () => page.locator('.list-item').count(),
      count => count === 2
    )
    // the requests of the console itself are traced too
    await page.getByRole('link', { name: 'With reads' }).click()
    await page.locator('.list-item', { hasText: 'GET /' }).first().waitFor()
    await page.getByRole('link', { name: 'Without reads' }).click()
    await page.locator('.list-item', { hasText: 'POST /api/v1/chat' }).nth(1).click()
    await spans.getByText('model-calls').first().waitFor()
    await spans.focus()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowDown')
    const selected = await spans.locator('[aria-selected="true"]').innerText()
    await until(
      async () => page.url(),
      url => url.includes('span=')
    )
    await page.reload()
    await until(
      async () => spans.locator('[aria-selected="true"]').innerText(),
      text => text === selected
    )
    expect(problems).to.deep.equal([])
  })

  it('goes on over a reload of the server', async () => {
    await using view = await open('overview')
    const { page, problems } = view
    await page.getByText('live').first().waitFor()
    const { code, err } = await runSvc(['reload'], { home: server.home })
    expect(code, err).to.equal(0)
    await post(`${server.url}/api/v1/chat`, { message: 'after the reload' })
    await page.getByText('Turn completed').first().waitFor()
    expect(problems.filter(text => !/ERR_|network/i.test(text))).to.deep.equal([])
  })

  it('moves by keys alone, and names the place', async () => {
    await using view = await open('overview')
    const { page } = view
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('c')
    await page.getByRole('heading', { name: 'Conversations', level: 1 }).waitFor()
    expect(await page.title()).to.equal('Conversations · svc console')
    await until(
      () => page.evaluate<string>('document.activeElement.textContent'),
      text => text === 'Conversations'
    )
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keys' }).waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('g')
    await page.keyboard.press('p')
    await page.getByRole('heading', { name: 'Playground', level: 1 }).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('Hello')
    await page.keyboard.press('Enter')
    await page.getByText('You said: Hello').waitFor()
  })

  it('asks nothing while nothing happens', async () => {
    await using view = await open('overview')
    const { page, requests } = view
    await page.getByText('live').first().waitFor()
    await page.waitForTimeout(2_000)
    const before = requests.length
    await page.waitForTimeout(8_000)
    expect(requests.slice(before)).to.deep.equal([])
  })
})
