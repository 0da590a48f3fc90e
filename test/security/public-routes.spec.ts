import { expect } from 'chai'
import type { Service } from '../support/service.ts'
import { inWorkspace, type PluginWorkspace } from '../support/plugin-workspace.ts'
import { routesOf, type Stranger, serveStrangers, writeStranger } from '../support/stranger.ts'
import { describeWith } from '../support/needs.ts'

interface Added {
  readonly method: string
  readonly path: string
  readonly scope?: string
}
const READ: Added = { method: 'GET', path: '/notes', scope: 'read' }
const OPEN: Added = { method: 'GET', path: '/notes' }

/** A plugin that adds these routes, and others as soon as one of them has been asked. */
const adding = (
  name: string,
  routes: Readonly<Record<string, Added>>,
  svc: object,
  later: Readonly<Record<string, Added>> = {}
) => ({
  name: `svc-plugin-${name}`,
  svc: { kind: 'routes', ...svc },
  code: `import { definePlugin } from '@svc/core'
import { Routes } from '@svc/core/contracts'
const addAll = (scope, routes, text) => {
  for (const [name, route] of Object.entries(routes)) {
    scope.add(Routes, name, { summary: 'Notes', ...route, handle: async () => {
      addAll(scope, text === 'later' ? {} : ${JSON.stringify(later)}, 'later')
      return { text }
    } })
  }
}
export default definePlugin({ setup: scope => addAll(scope, ${JSON.stringify(routes)}, 'the notes') })`,
})
const notes = (added: Added, svc: object, more: Partial<Stranger> = {}): Stranger => ({
  ...adding('notes', { notes: added }, svc),
  ...more,
})
const declaring = (declared: Added) => routesOf({ notes: declared })

/** Each is a plugin of its own in one server, which starts without those that cannot be started. */
const REFUSED: Readonly<Record<string, readonly [Stranger, RegExp]>> = {
  'that is open without the permission': [
    notes(OPEN, { ...declaring(OPEN), permissions: {} }),
    /PERMISSION_MISSING[^]*"public_routes": \["notes"\]/,
  ],
  'whose permission was not accepted': [notes(OPEN, declaring(OPEN), { permissions: {} }), /PERMISSION_MISSING[^]*public_routes/],
  'whose permission is for another route': [
    notes(OPEN, { ...declaring(OPEN), permissions: { public_routes: ['note'] } }),
    /PERMISSION_MISSING/,
  ],
  'that is open and declared with a scope': [notes(OPEN, declaring(READ)), /CONTRIBUTION_DIFFERS[^]*scope/],
  'with another method': [notes({ ...READ, method: 'POST' }, declaring(READ)), /CONTRIBUTION_DIFFERS[^]*POST[^]*GET/],
  'with another path': [notes({ ...READ, path: '/:any' }, declaring(READ)), /CONTRIBUTION_DIFFERS[^]*:any/],
  'with another scope': [notes({ ...READ, scope: 'chat' }, declaring(READ)), /CONTRIBUTION_DIFFERS[^]*chat/],
  'that is not declared': [notes(READ, {}), /CONTRIBUTION_UNDECLARED[^]*"routes": {"notes":{"method":"GET","path":"/],
  'that is declared by name alone': [
    notes(READ, { contributes: { routes: ['*'] } }),
    /MANIFEST_INVALID[^]*routes must be object/,
  ],
  'that is declared with no path': [
    notes(READ, { contributes: { routes: { notes: { method: 'GET', path: 'https://evil.example' } } } }),
    /MANIFEST_INVALID[^]*must be a path/,
  ],
}
const LATER = { other: { ...READ, path: '/other' }, 'notes-open': { ...OPEN, path: '/notes-open' } }
const SERVED = {
  'of a plugin that declares it': adding(
    'good',
    { good: { ...READ, path: '/good' } },
    routesOf({ good: { ...READ, path: '/good' } })
  ),
  'that is open with the permission': adding(
    'open',
    { open: { ...OPEN, path: '/open' } },
    routesOf({ open: { ...OPEN, path: '/open' } })
  ),
}

describeWith('bubblewrap', 'a route of an isolated plugin', function () {
  this.timeout(60_000)
  let service: Service
  before(async () => {
    const late = { good: { ...READ, path: '/late' }, 'notes-open': LATER['notes-open'] }
    service = await serveStrangers(
      [
        ...Object.values(SERVED),
        adding(
          'late',
          { late: { ...READ, path: '/late' } },
          { ...routesOf({ ...late, late: late.good }), permissions: {} },
          LATER
        ),
        ...Object.values(REFUSED).map(([item], at) => {
          const name = `svc-plugin-refused-${at}`
          return {
            ...item,
            name,
            code: item.code.replaceAll('"/notes"', `"/refused-${at}"`),
            svc: movedTo(item.svc, at),
            optional: true,
          } as const
        }),
      ],
      { beside: ['metrics'] }
    )
  })
  after(() => service[Symbol.asyncDispose]())
  const get = async (path: string) => {
    const answer = await fetch(`${service.url}${path}`)
    return { status: answer.status, text: await answer.text() }
  }

  for (const [what, { name }] of Object.entries(SERVED))
    it(`is served, ${what}`, async () =>
      expect(await get(name.replace('svc-plugin-', '/'))).to.deep.equal({ status: 200, text: 'the notes' }))

  Object.entries(REFUSED).forEach(([what, [, words]], at) =>
    it(`is refused, ${what}`, async () => {
      const said = new RegExp(`"plugin":"svc-plugin-refused-${at}".*an optional plugin failed`)
      await service.seen(said)
      const lines = service
        .output()
        .split('\n')
        .filter(line => said.test(line))
      expect(lines).to.have.length(1)
      expect(lines[0]!.replaceAll('\\"', '"')).to.match(words)
      for (const path of [`/refused-${at}`, '/anything']) expect((await get(path)).status, path).to.equal(404)
    })
  )

  it('is refused after the start too: the server does not have it, and the log says why', async () => {
    expect((await get('/late')).text).to.equal('the notes')
    await service.seen(/adds \\"other\\" to routes, which its manifest does not declare/)
    await service.seen(/adds \\"notes-open\\" to routes without \\"scope\\", but has no permission/)
    for (const { path } of Object.values(LATER)) expect((await get(path)).status, path).to.equal(404)
  })
})

/** The same manifest with a path of its own. */
const movedTo = (svc: Stranger['svc'], at: number) =>
  JSON.parse(JSON.stringify(svc).replaceAll('"/notes"', `"/refused-${at}"`)) as Stranger['svc']

describeWith('bubblewrap', 'an installation of a plugin with routes', function () {
  this.timeout(60_000)
  const install = async (workspace: PluginWorkspace, stranger: Stranger, ...flags: string[]) =>
    workspace.svc('plugins', 'install', await writeStranger(workspace.folder, stranger), ...flags)

  it('shows method, path and scope of each, the open ones first; so does svc plugins info', () =>
    inWorkspace(async workspace => {
      const routes = { notes: READ, 'notes-open': { method: 'POST', path: '/notes/:id' } }
      const both = notes(READ, { kind: 'routes', ...routesOf(routes) })
      const code = both.code.replace(
        "add('notes'",
        `add('notes-open', ${JSON.stringify(routes['notes-open'])}, async () => ({}))\n    add('notes'`
      )
      const { out, code: exit, err } = await install(workspace, { ...both, code }, '--yes')
      expect(exit, err).to.equal(0)
      const info = await workspace.svc('plugins', 'info', both.name)
      for (const text of [out, info.out])
        expect(text)
          .to.match(/answers +POST \/notes\/:id: OPEN to every client, without a credential\n +GET \/notes: needs the scope read/)
          .and.contain('answer every client, without a credential: route notes-open')
      const { contributes, permissions } = JSON.parse((await workspace.svc('plugins', 'info', both.name, '--json')).out)
      expect({ contributes, permissions }).to.deep.equal({
        contributes: { routes },
        permissions: { public_routes: ['notes-open'] },
      })
    }))

  it('asks again where an update opens one', () =>
    inWorkspace(async workspace => {
      expect((await install(workspace, notes(READ, declaring(READ)), '--yes')).code).to.equal(0)
      const opened = { ...notes(OPEN, declaring(OPEN)), version: '1.1.0' }
      const { code, out, err } = await install(workspace, opened)
      expect(code).to.equal(2)
      expect(out + err).to.contain('public_routes notes')
      expect(await workspace.lock()).to.not.contain('public_routes')
    }))
})
