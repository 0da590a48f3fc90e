import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { openCuttingProxy } from '../client/support/cutting-proxy.ts'
import { describeWith } from '../support/needs.ts'
import { post } from '../support/service.ts'
import { until } from '../support/wait.ts'
import { openConsole } from './support/browser.ts'
import { byKeyboard } from './support/keyboard.ts'
import { useConsole } from './support/use-console.ts'

const ASKS = fileURLToPath(new URL('../support/asks.ts', import.meta.url))
const WHOLE = 'one two three four five six seven eight nine ten eleven twelve'

describeWith('chromium', 'chats of the console, by keys alone', function () {
  this.timeout(120_000)
  const server = useConsole({ config: { plugins: [ASKS] } })
  const { open } = server

  it('a first message is sent, and a tool that asks is allowed and denied', async () => {
    await using view = await open('overview')
    const keys = await byKeyboard(view.page)
    await keys.go('p', 'Playground')
    await keys.press('/')
    await keys.type('Hello')
    await keys.press('Enter')
    await keys.see(view.page.getByText('You said: Hello'))
    await keys.type('/tool whereabouts {}')
    await keys.press('Enter')
    await keys.see(view.page.getByRole('form', { name: 'Question of whereabouts' }))
    await keys.activate('Allow')
    await keys.see(view.page.getByText(/whereabouts answered: \d+/))
    await keys.press('/')
    await keys.type('/tool whereabouts {}')
    await keys.press('Enter')
    await keys.see(view.page.getByRole('form', { name: 'Question of whereabouts' }))
    await keys.activate('Deny')
    await keys.see(view.page.locator('details.tool').last().getByText('failed', { exact: true }))
    await keys.end()
    expect(view.problems).to.deep.equal([])
  })

  it('a reply over a broken connection goes on', async () => {
    await using proxy = await openCuttingProxy(server.url, 4)
    await using view = await openConsole(server.browser, `${proxy.url}/console/playground`)
    const keys = await byKeyboard(view.page)
    await keys.press('/')
    await keys.type('/pace 60')
    await keys.press('Shift+Enter')
    await keys.type(WHOLE)
    await keys.press('Enter')
    await keys.see(view.page.getByText(/tokens in/))
    expect(await view.page.locator('.message-assistant .markdown').innerText()).to.contain(WHOLE)
    expect(proxy.paths.filter(path => path.includes('/chat/stream')).length).to.be.greaterThan(2)
    await keys.end()
  })

  it('a conversation is found, a message of it is edited, and it is forked', async () => {
    const { body } = await post(`${server.url}/api/v1/chat`, { message: 'The zebra crosses the road' })
    const id = String(body.conversation_id)
    await post(`${server.url}/api/v1/chat`, { message: 'The wrong question', conversation_id: id })
    await using view = await open('overview')
    const { page, problems } = view
    const keys = await byKeyboard(page)
    await keys.go('c', 'Conversations')
    await keys.press('/')
    await keys.type('zebra')
    await keys.see(page.locator('mark', { hasText: 'zebra' }).first())
    await keys.activate(/zebra/)
    const messages = page.getByRole('region', { name: 'Messages' })
    await keys.see(messages.getByText('The wrong question', { exact: true }))
    await keys.tabTo('Edit')
    await keys.activate('Edit')
    await keys.see(page.getByRole('dialog', { name: 'Edit the message' }))
    await keys.press('Control+a')
    await keys.type('The right question')
    await keys.activate('Send')
    await keys.see(page.getByRole('heading', { name: 'Playground', level: 1 }))
    await keys.see(page.getByText('You said: The right question'))
    // the messages before it are there, too
    await keys.see(page.getByText('The zebra crosses the road', { exact: true }))
    expect(await page.getByText('The wrong question').count()).to.equal(0)
    await keys.activate('Conversation')
    await keys.see(page.getByRole('link', { name: 'forked' }))
    const edited = new URL(page.url()).searchParams.get('id')
    await keys.activate('Fork from here')
    await until(
      async () => new URL(page.url()).searchParams.get('id'),
      forked => forked !== edited && forked !== id
    )
    await keys.see(page.getByRole('link', { name: 'forked' }))
    await keys.end()
    expect(problems).to.deep.equal([])
  })

  it('two models are compared', async () => {
    await using view = await open('playground?provider=local&model=local-1')
    const { page, problems } = view
    const keys = await byKeyboard(page)
    await keys.tabTo(/^Compare two models/)
    await keys.press('Space')
    await keys.tabTo(/^Second provider/)
    await keys.type('local')
    await until(
      async () => page.url(),
      url => url.includes('provider2=local')
    )
    await keys.tabTo(/^Second model/)
    await keys.type('local-small')
    await until(
      async () => page.url(),
      url => url.includes('model2=local-small')
    )
    await keys.tabTo('Message')
    await keys.type('Hello')
    await keys.press('Enter')
    await keys.see(page.getByRole('region', { name: 'Second chat' }).getByText('local / local-small'))
    await keys.see(page.getByRole('region', { name: 'Second chat' }).getByText(/tokens in/))
    await keys.see(page.getByRole('region', { name: 'First chat' }).getByText(/tokens in/))
    await keys.end()
    expect(problems).to.deep.equal([])
  })
})
