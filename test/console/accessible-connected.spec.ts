import { readdir } from 'node:fs/promises'
import { expect } from 'chai'
import { describeWith } from '../support/needs.ts'
import { checkPages, EACH_PAGE, usePageServers } from './support/accessible.ts'
import { openConsole } from './support/browser.ts'
import { PAGE_GROUPS, pageStates } from './support/page-states.ts'

describeWith('chromium', `${EACH_PAGE}: tools, MCP servers, providers and plugins`, function () {
  this.timeout(120_000)
  const servers = usePageServers()
  checkPages('connected', servers)

  it('and none of the router is left out, nor a group of pages', async () => {
    const { browser, bare } = servers()
    await using view = await openConsole(browser, `${bare.url}/console/overview`)
    await view.page.locator('h1').waitFor()
    const routes = await view.page.evaluate<string[]>('Object.keys(window.__TSR_ROUTER__.routesByPath)')
    const ownPages = routes.filter(path => path !== '/')
    expect(ownPages.length).to.be.greaterThan(20)
    expect(Object.keys(pageStates({}))).to.have.members(ownPages)
    const files = (await readdir(import.meta.dirname)).filter(name => name.startsWith('accessible-'))
    expect(files).to.have.members(PAGE_GROUPS.map(group => `accessible-${group}.spec.ts`))
  })
})
