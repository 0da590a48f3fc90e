import { expect } from 'chai'
import { describeWith } from '../support/needs.ts'
import { expectListed } from './support/listed-paths.ts'
import { useConsole } from './support/use-console.ts'

describeWith('chromium', 'requests of the console', function () {
  this.timeout(60_000)
  const server = useConsole()
  const problemOf = (result: PromiseLike<unknown>) =>
    result.then(
      () => '',
      (error: unknown) => String(error)
    )

  it('fail a test if the OpenAPI document does not list them, also below /console', async () => {
    const view = await server.open('overview')
    const { page } = view
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    for (const path of [
      '/console',
      '/console/files/private',
      '/console/files/../state.js',
      '/console/frames/private/app.html',
      '/api/v1/console/state',
    ])
      expect(await problemOf(expectListed(page, [path])), path).to.contain(`'${path}'`)
    for (const path of ['/console/files/index-abc_1-2.js', '/console/frames/app.html', '/api/v1/console/session', '/api/v1/me'])
      expect(await problemOf(expectListed(page, [path])), path).to.equal('')
    await page.evaluate("fetch('/console/state').then(answer => answer.text())")
    expect(await problemOf(view[Symbol.asyncDispose]())).to.contain("'/console/state'")
  })
})
