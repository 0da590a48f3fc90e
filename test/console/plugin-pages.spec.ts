import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import type { Browser } from 'playwright-core'
import { runSvc } from '../support/command.ts'
import { describeWith, lacking, skipBecause } from '../support/needs.ts'
import { newHome, type Service, startService } from '../support/service.ts'
import { until } from '../support/wait.ts'
import { expectAccessible, openBrowser, openConsole } from './support/browser.ts'
import {
  call,
  expectAtHome,
  expectUsable,
  frameOf,
  type HostilePages,
  moveIntoFrame,
  openHostilePages,
  READ,
  tryAll,
} from './support/hostile-page.ts'
import type { CuratedHost, Outside } from './support/page-plugins.ts'

describeWith('chromium', 'a hostile page of a plugin', function () {
  this.timeout(120_000)
  let pages: HostilePages
  let service: CuratedHost
  let outside: Outside
  before(async () => {
    pages = await openHostilePages()
    ;({ service, outside } = pages)
  })
  after(() => pages?.[Symbol.asyncDispose]())
  const openPage: HostilePages['openPage'] = (...how) => pages.openPage(...how)

  it('runs with the rights that its plugin declared, the session of the person, and no credential', async () => {
    const { frame, token, context } = await openPage()
    expect(await frame.evaluate('window.own')).to.equal(true)
    const { result } = await call(frame, 'svc/request', { method: 'GET', path: '/hostile/things' })
    expect(result!.status).to.equal(200)
    const body = result!.body as { headers: string[] }
    expect(JSON.stringify(body)).not.to.contain(token)
    expect(body.headers).not.to.include.members(['authorization', 'cookie', 'x-api-key'])
    const shown = await frame.evaluate<string>(
      'JSON.stringify([svc.context(), location.href, document.referrer, { ...window.name }])'
    )
    expect(shown).not.to.contain(token)
    expect(JSON.parse(shown)[0]).to.include({ theme: 'light' })
    await context.close()
  })

  it('reads nothing of the console and of the browser: it has an origin of its own', async () => {
    const { frame, context } = await openPage()
    expect(await frame.evaluate('origin')).to.equal('null')
    const ends = await tryAll(frame, {
      cookie: 'document.cookie',
      'local storage': 'localStorage.length',
      'session storage': 'sessionStorage.length',
      databases:
        'new Promise((resolve, reject) => { const open = indexedDB.open("x"); open.onsuccess = resolve; open.onerror = () => reject(open.error) })',
      caches: 'caches.keys()',
      'files of the origin': 'navigator.storage.getDirectory()',
      'document of the console': 'parent.document.body.innerHTML',
      'storage of the console': 'parent.localStorage.length',
      'address of the console': 'top.location.href',
      'global of the console': 'parent.React ?? parent.client',
      'own element': 'frameElement.outerHTML',
      domain: '(document.domain = "127.0.0.1", parent.document.body.innerHTML)',
      'eval of text': '(0, Function)("return 1")()',
      'script address': '(location.href = "javascript:void(window.jumped = true)", new Promise(() => {}))',
    })
    for (const [name, end] of Object.entries(ends))
      expect(end, name).to.be.oneOf([
        'SecurityError',
        'InvalidAccessError',
        'EvalError',
        'TypeError',
        'got nothing',
        'got null',
        'got undefined',
      ])
    expect(await frame.evaluate('[window.inline, window.handler, window.jumped, window.opener]')).to.deep.equal([
      undefined,
      undefined,
      undefined,
      null,
    ])
    // other windows of the origin do not hear it either
    await frame.evaluate('new BroadcastChannel("svc").postMessage("x")')
    await context.close()
  })

  it('has no worker and no service worker', async () => {
    const { frame, page, context } = await openPage()
    const ends = await tryAll(frame, {
      'service worker': 'navigator.serviceWorker.register("page.js")',
      'its list': 'navigator.serviceWorker.getRegistrations()',
      worker: 'new Promise((resolve, reject) => { new Worker("page.js").onerror = () => reject(new TypeError()) })',
      'worker of text':
        'new Promise((resolve, reject) => { new Worker(URL.createObjectURL(new Blob(["postMessage(1)"]))).onerror = () => reject(new TypeError()) })',
      'shared worker':
        'new Promise((resolve, reject) => { new SharedWorker("page.js").onerror = () => reject(new TypeError()) })',
    })
    for (const [name, end] of Object.entries(ends))
      expect(end, name).to.be.oneOf(['SecurityError', 'TypeError', 'InvalidStateError'])
    expect(await page.evaluate('navigator.serviceWorker.getRegistrations().then(all => all.length)')).to.equal(0)
    await context.close()
  })

  it('reaches neither the API nor the outside, with or without the session', async () => {
    const { frame, context } = await openPage()
    const before = service.reached.length
    const reached = outside.requests.length
    for (const url of [`${service.url}/api/v1/me`, `${service.url}/hostile/things`, `${outside.url}/x`]) {
      const sent = `${url}?sent`
      const ends = await tryAll(frame, {
        fetch: `fetch("${sent}", { credentials: "include" })`,
        'fetch, blind': `fetch("${sent}", { mode: "no-cors", credentials: "include" })`,
        'kept alive': `fetch("${sent}", { method: "POST", keepalive: true, mode: "no-cors", body: "x" })`,
        request: `new Promise((resolve, reject) => { const r = new XMLHttpRequest(); r.onload = resolve; r.onerror = () => reject(new TypeError()); r.open("GET", "${sent}"); r.send() })`,
        socket: `new Promise((resolve, reject) => { const s = new WebSocket("${sent.replace('http', 'ws')}"); s.onopen = resolve; s.onerror = () => reject(new TypeError()) })`,
        events: `new Promise((resolve, reject) => { const s = new EventSource("${sent}"); s.onopen = resolve; s.onerror = () => reject(new TypeError()) })`,
        stream: `new WebTransport("${sent.replace('http', 'https')}").ready`,
        module: `import("${url}")`,
      })
      for (const [name, end] of Object.entries(ends))
        expect(end, `${name} of ${url}`).to.be.oneOf([
          'TypeError',
          'SecurityError',
          'ReferenceError',
          'WebTransportError',
          'got nothing',
        ])
      await frame.evaluate(`(() => {
        navigator.sendBeacon("${sent}", "x")
        const add = (tag, set) => { const element = Object.assign(document.createElement(tag), set); document.body.append(element); return element }
        add('form', { action: "${url}", method: 'post' }).submit()
        add('iframe', { src: "${url}" })
        add('object', { data: "${url}" })
        add('embed', { src: "${url}" })
        add('video', { src: "${url}" })
        for (const rel of ['stylesheet', 'prefetch', 'preload', 'preconnect', 'dns-prefetch', 'modulepreload', 'manifest', 'icon']) add('link', { rel, href: "${url}", as: 'script' })
        add('style', { textContent: '@import "${url}"; body { background: url("${url}") }' })
        add('a', { ping: "${url}", href: '#x' }).click()
        ${url.startsWith(outside.url) ? `add('img', { src: "${url}" }); add('script', { src: "${url}" })` : ''}
      })()`)
    }
    await new Promise(resolve => setTimeout(resolve, 700))
    expect(outside.requests.slice(reached)).to.deep.equal([])
    const own = service.reached.slice(before).filter(({ request }) => /\/api\/v1\/me|\/hostile\/things/.test(request))
    expect(own.filter(({ request }) => request.endsWith('?sent') || !request.startsWith('GET '))).to.deep.equal([])
    // scripts, styles and images can be files of this server: such requests come without the session, and get nothing
    for (const one of own) expect(one).to.include({ status: 403, origin: 'null', hasCredential: false })
    await context.close()
  })

  it('images of this server come without the session, and are refused for their origin', async () => {
    const { frame, context } = await openPage()
    const before = service.reached.length
    await frame.evaluate(`void document.body.append(Object.assign(new Image(), { src: '/hostile/things?image' }))`)
    const answer = await until(
      async () => service.reached.slice(before).find(({ request }) => request === 'GET /hostile/things?image'),
      found => found !== undefined
    )
    expect(answer).to.include({ status: 403, hasCredential: false })
    await context.close()
  })

  it('moves neither the console nor itself elsewhere, and opens no window, download or dialog', async () => {
    const { frame, page, context } = await openPage()
    let opened = 0
    context.on('page', () => opened++)
    page.on('download', () => opened++)
    page.on('dialog', dialog => (opened++, void dialog.dismiss()))
    const ends = await tryAll(frame, {
      top: `(top.location = "${outside.url}", new Promise(() => {}))`,
      parent: `(parent.location.replace("${outside.url}"), new Promise(() => {}))`,
      'top, by script': `(top.location = "javascript:alert(1)", new Promise(() => {}))`,
      history: '(history.go(-1), parent.history.back(), new Promise(() => {}))',
      window: `(window.open("${outside.url}"), open("${outside.url}", "_top"), open("about:blank"))`,
      alert: 'alert("x")',
      confirm: 'confirm("x")',
      prompt: 'prompt("x")',
      print: 'print()',
      'full screen': 'document.documentElement.requestFullscreen()',
      pointer: 'document.documentElement.requestPointerLock()',
      clipboard: 'navigator.clipboard.readText()',
      'writing to the clipboard': 'navigator.clipboard.writeText("x")',
      place: 'new Promise((resolve, reject) => navigator.geolocation.getCurrentPosition(resolve, () => reject(new TypeError())))',
      camera: 'navigator.mediaDevices.getUserMedia({ video: true })',
      screen: 'navigator.mediaDevices.getDisplayMedia()',
      notices: 'Notification.requestPermission()',
    })
    for (const [name, end] of Object.entries(ends))
      expect(end, name).to.match(
        /^(?:SecurityError|TypeError|NotAllowedError|WrongDocumentError|InvalidStateError|ReferenceError|NotFoundError|got (?:nothing|null|undefined|false|denied))$/
      )
    // with a gesture of the reader
    for (const set of [`target: '_top'`, `target: '_blank'`, `target: '_parent'`, `download: 'x.txt'`]) {
      await frame.evaluate(
        `void document.body.replaceChildren(Object.assign(document.createElement('a'), { id: 'link', textContent: 'Click', href: "${outside.url}", ${set} }))`
      )
      await moveIntoFrame(page)
      await frame.click('#link')
    }
    await new Promise(resolve => setTimeout(resolve, 500))
    expectAtHome(page, service)
    expect(opened).to.equal(0)
    expect(outside.requests.filter(request => request !== 'GET /favicon.ico')).to.deep.equal([])
    await expectUsable(page)
    await context.close()
  })

  it('that goes to another document is stopped, and keeps nothing of its place', async () => {
    const { frame, page, context } = await openPage()
    const other = await page.evaluate<string>(
      `fetch('/api/v1/console/pages').then(r => r.json()).then(({ pages }) => pages.find(({ name }) => name === 'honest').url)`
    )
    // it does not know that address, but if it did
    await frame.evaluate(`void (location.href = ${JSON.stringify(other)})`)
    await page
      .getByRole('alert')
      .getByText(/has left its place/)
      .waitFor()
    expect(await page.locator('iframe').count()).to.equal(0)
    await page.getByRole('button', { name: 'Try again' }).click()
    await frameOf(page)
    await context.close()
  })

  it('that goes outside reaches nothing there but a bare connection', async () => {
    const { frame, page, context } = await openPage()
    const before = outside.requests.length
    await frame.evaluate(`void (location.href = "${outside.url}/gone")`)
    await page.waitForTimeout(500)
    expect(outside.requests.slice(before)).to.deep.equal([])
    await expectUsable(page)
    await context.close()
  })

  it('gets no request beyond its declaration, however it writes it', async () => {
    const { frame, requests, context } = await openPage()
    const before = requests.length
    const asked: readonly object[] = [
      ...['/hostile/secret', '/honest/things', '/api/v1/me', '/api/v1/tokens', '/API/V1/TOKENS', '/console/'].map(path => ({
        method: 'GET',
        path,
      })),
      ...[
        '/hostile/things/../secret',
        '/hostile/things/%2e%2e/secret',
        '/hostile//secret',
        '/hostile/./secret',
        '//outside.example/hostile/things',
      ].map(path => ({ method: 'GET', path })),
      ...[
        '/hostile/things%2f..%2fsecret',
        '/hostile/things?x=1',
        '/hostile/things#x',
        '/hostile/things\\..\\secret',
        '/hostile/things\u0000',
        '/hostile/things ',
        'hostile/things',
        '',
      ].map(path => ({ method: 'GET', path })),
      { method: 'GET', path: `${service.url}/hostile/things` },
      { method: 'GET', path: ['/hostile/things'] },
      { method: 'get', path: '/hostile/things' },
      { method: 'TRACE', path: '/hostile/things' },
      { method: 'DELETE', path: '/hostile/things' },
      { method: 'GET', path: '/hostile/things', body: {} },
      { method: 'GET', path: '/hostile/things', query: [['x']] },
      { method: 'GET', path: '/hostile/things', query: { x: { toString: 1 } } },
      { method: 'POST', path: '/api/v1/tokens', body: { name: 'x', scopes: ['admin'] } },
      { method: 'POST', path: '/api/v1/%74okens', body: {} },
      { method: 'POST', path: '/api/v1/plugins/plans', body: { action: 'install', name: 'x' } },
      { method: 'DELETE', path: '/api/v1/console/session' },
      { method: 'CONNECT', path: 'constructor' },
      {},
    ]
    for (const params of asked) {
      const { result, error } = await call(frame, 'svc/request', params)
      expect(result, JSON.stringify(params)).to.equal(undefined)
      expect(error!.data.code, JSON.stringify(params)).to.be.oneOf(['FORBIDDEN', 'INVALID_VALUE'])
      // as many messages as a page may send
      await new Promise(resolve => setTimeout(resolve, 25))
    }
    for (const method of ['tools/call', 'resources/read', 'ui/open-link', 'ui/message', 'constructor', '__proto__', 'toString'])
      expect((await call(frame, method, { name: 'x', url: outside.url })).error!.code, method).to.equal(-32601)
    expect(requests.slice(before).filter(request => !/console\/(files|frames)/.test(request))).to.deep.equal([])
    await context.close()
  })

  it('gets no more than the scopes of the person, who does not see pages beyond them', async () => {
    const { frame, page, requests, context } = await openPage('hostile', READ)
    const { result } = await call(frame, 'svc/request', { method: 'POST', path: '/hostile/things', body: {} })
    expect(result!.status).to.equal(403)
    expect(requests).to.include('POST /hostile/things')
    await page.getByRole('link', { name: 'Hostile', exact: true }).waitFor()
    expect(await page.getByRole('link', { name: 'Hostile settings' }).count()).to.equal(0)
    await page.goto(`${service.url}/console/pages/hostile-admin`)
    await page.getByText('There is no such page').waitFor()
    await context.close()
  })

  it('forges no messages: of another form, of another window, of the console', async () => {
    const { frame, page, requests, problems, context } = await openPage()
    const before = requests.length
    const good = `{ jsonrpc: '2.0', id: 1, method: 'svc/request', params: { method: 'GET', path: '/hostile/things' } }`
    await frame.evaluate(`(() => {
      for (const message of [null, undefined, 0, 'x', [], [${good}], JSON.stringify(${good}), new Map(), new Date(), new Blob(['x']), { ...${good}, jsonrpc: '1.0' }, { ...${good}, id: {} },
        { ...${good}, method: ['svc/request'] }, Object.assign(Object.create(null), { jsonrpc: '2.0', id: 'ping', error: {} }), JSON.parse('{"__proto__":{"jsonrpc":"2.0","method":"svc/request","id":1}}')])
        parent.postMessage(message, '*')
      // a frame in the frame is another window
      const inner = document.createElement('iframe')
      document.body.append(inner)
      inner.contentWindow.parent.parent.postMessage({}, '*')
    })()`)
    await page.waitForTimeout(300)
    expect(requests.slice(before)).to.deep.equal([])
    expect(problems.filter(text => !/policy|Refused|sandbox|violates/i.test(text))).to.deep.equal([])
    // types that are no plain data end the page
    const isStopped = (await page.getByRole('alert').count()) > 0
    if (isStopped)
      await page
        .getByRole('alert')
        .getByText(/too large/)
        .waitFor()
    await expectUsable(page)
    await context.close()
  })

  for (const [what, attack, reason] of [
    [
      'a huge message',
      `parent.postMessage({ jsonrpc: '2.0', id: 1, method: 'x', params: { text: 'x'.repeat(100_000_000) } }, '*')`,
      /too large/,
    ],
    [
      'a message of a million values',
      `parent.postMessage({ jsonrpc: '2.0', id: 1, method: 'x', params: Array.from({ length: 1_000_000 }, (_, at) => at) }, '*')`,
      /too large/,
    ],
    [
      'a deep message',
      `for (let depth = 5_000; depth > 100; depth = Math.floor(depth * 0.8)) {
        let value = {}
        for (let i = 0; i < depth; i++) value = { value }
        // the browser itself refuses the deepest, or drops them
        try { parent.postMessage({ jsonrpc: '2.0', params: value }, '*') } catch {}
      }`,
      /too large/,
    ],
    [
      'messages without end',
      `setInterval(() => { for (let i = 0; i < 1_000; i++) parent.postMessage({ jsonrpc: '2.0', id: i, method: 'svc/request', params: {} }, '*') }, 1)`,
      /too many messages/,
    ],
  ] as const)
    it(`that sends ${what} is stopped, and the console goes on`, async () => {
      const { frame, page, context } = await openPage()
      await frame.evaluate(`void (() => { ${attack} })()`)
      await page.getByRole('alert').getByText(reason).waitFor()
      expect(await page.locator('iframe').count()).to.equal(0)
      await expectUsable(page)
      await context.close()
    })

  it('has so many requests at once, and no more', async () => {
    const { frame, requests, context } = await openPage()
    const before = requests.length
    const codes = await frame.evaluate<string[]>(`Promise.all(Array.from({ length: 60 }, () =>
      svc.request('GET', '/hostile/things').then(() => 'answered', error => error.code)))`)
    expect(codes.filter(code => code === 'RATE_LIMITED').length).to.be.greaterThan(20)
    expect(requests.slice(before).length).to.be.lessThan(40)
    await context.close()
  })

  it('covers nothing but its place, at any width', async () => {
    for (const width of [1280, 360]) {
      const { frame, page, context } = await openPage('hostile', READ, width)
      await frame.evaluate(`void (() => {
        const cover = document.createElement('div')
        cover.textContent = 'x'
        Object.assign(cover.style, { position: 'fixed', inset: '-10000px', width: '100000px', height: '100000px', zIndex: 2147483647, background: 'red' })
        document.body.append(cover)
        document.documentElement.style.width = '100000px'
        parent.postMessage({ jsonrpc: '2.0', method: 'ui/notifications/size-changed', params: { width: 100000, height: 100000 } }, '*')
        cover.popover = 'manual'
        cover.showPopover()
      })()`)
      const place = (await page.locator('iframe').boundingBox())!
      const head = (await page.getByRole('heading', { name: 'Hostile', level: 1 }).boundingBox())!
      expect(place.y).to.be.at.least(head.y + head.height)
      expect(place.x + place.width).to.be.at.most(width)
      expect(place.y + place.height).to.be.at.most(800)
      expect(await page.evaluate('document.documentElement.scrollWidth > innerWidth')).to.equal(false)
      await page.getByText(/A page of the plugin/).waitFor()
      if (width === 360) await page.getByRole('button', { name: 'Menu' }).click()
      await expectUsable(page)
      await context.close()
    }
  })

  it('that keeps the processor busy blocks only itself; the console says so, and loads it again', async () => {
    const { frame, page, context } = await openPage()
    await frame.evaluate('void setTimeout(() => { for (;;); }, 50)')
    await page.getByText('The page does not answer').waitFor()
    const begun = Date.now()
    await page.getByRole('button', { name: 'Load it again' }).click()
    await frameOf(page)
    expect(Date.now() - begun).to.be.lessThan(10_000)
    await expectUsable(page)
    await context.close()
  })

  it('without the connection to the console is stopped after a while, with the reason', async () => {
    const { context, page } = await pages.signIn('hostile-static', READ)
    await page
      .getByRole('alert')
      .getByText(/did not start/)
      .waitFor()
    await expectAccessible(page, 'a page that did not start')
    await context.close()
  })

  it('is served only with its signature, from its folder, with its policy, and in a frame of the console', async () => {
    const { page, context } = await openPage()
    const pages = await page.evaluate<{ name: string; url: string }[]>(
      `fetch('/api/v1/console/pages').then(r => r.json()).then(({ pages }) => pages)`
    )
    const urlOf = (name: string) => pages.find(one => one.name === name)!.url
    const folder = urlOf('hostile').replace('index.html', '')
    const get = async (path: string) => {
      const answer = await fetch(`${service.url}${path}`)
      await answer.arrayBuffer()
      return answer
    }
    const good = await get(urlOf('hostile'))
    expect(good.status).to.equal(200)
    expect(good.headers.get('content-security-policy'))
      .to.match(/^sandbox allow-scripts allow-forms; default-src 'none'/)
      .and.not.to.contain('unsafe')
    expect((await get(`${folder}bridge.js`)).status).to.equal(200)
    const refused = [
      `${folder}../package.json`,
      `${folder}%2e%2e/secret.html`,
      `${folder}..%2fsecret.html`,
      `${folder}.hidden.js`,
      `${folder}index.js`,
      `${folder}none.html`,
      `${folder}`,
      `${folder}package.json`,
      `${folder}console/index.html`,
      urlOf('hostile').replace('/hostile/', '/honest/'),
      urlOf('hostile').replace('/hostile/', '/hostile-admin/'),
      urlOf('hostile').replace(/frames\/[^/]+/, 'frames/x'),
      '/console/frames/hostile/index.html',
    ]
    for (const path of refused) {
      const { status, headers } = await get(path)
      expect(
        [
          status,
          headers.get('content-type')?.includes('html') === true &&
            status === 200 &&
            !headers.get('content-security-policy')?.startsWith("default-src 'none'; script-src 'self'"),
        ],
        path
      ).to.satisfy(([code, isPage]: [number, boolean]) => code === 404 || (code === 200 && !isPage))
    }
    await context.close()
  })
})

const NOTES = fileURLToPath(new URL('../../examples/plugins/notes', import.meta.url))

describeWith('chromium', 'a page of an installed plugin', function () {
  this.timeout(240_000)
  let browser: Browser
  let home: string
  let service: Service
  before(async function () {
    home = await newHome()
    skipBecause(this, lacking('bubblewrap'))
    browser = await openBrowser()
    await writeFile(join(home, 'svc.config.yaml'), JSON.stringify({ host: { setup_timeout_ms: 60_000 } }))
    service = await startService({ home })
  })
  after(async () => {
    await browser?.close()
    await service?.stop()
    await rm(home, { recursive: true, force: true })
  })

  it('appears without a reload of the page, works from its own process, and follows theme and errors', async () => {
    await using view = await openConsole(browser, `${service.url}/console/overview`)
    const { page, problems } = view
    await page.getByText('live').first().waitFor()
    const { code, out, err } = await runSvc(['plugins', 'install', NOTES, '--yes'], { home })
    expect(code, err).to.equal(0)
    expect(out).to.contain('the page "Notes" in the console').and.to.contain('send POST /notes to your server')
    expect(out).to.contain('the panel "Notes" on the overview of the console to people with the scope read\n')
    // what the panel has read is old when the reader comes back to it
    const panel = page.getByRole('region', { name: 'Notes', exact: true })
    await panel.getByText('Nothing here yet').waitFor({ timeout: 60_000 })
    await page.getByRole('link', { name: 'Notes', exact: true }).click()
    await page.getByRole('heading', { name: 'Notes', level: 1 }).waitFor()
    const frame = page.frameLocator('iframe')
    await frame.getByText('There are no notes yet.').waitFor()
    await moveIntoFrame(page)
    await frame.getByLabel('A note for the others').fill('<b>The backup</b> runs at 3')
    await frame.getByRole('button', { name: 'Add' }).click()
    await frame.getByRole('listitem').getByText('<b>The backup</b> runs at 3').waitFor()
    const theme = () => frame.locator('html').getAttribute('data-theme')
    expect(await theme()).to.equal('light')
    await page.getByRole('button', { name: /^Theme/ }).click()
    await page.getByRole('button', { name: /^Theme/ }).click()
    await until(theme, now => now === 'dark')
    await moveIntoFrame(page)
    await frame.getByRole('button', { name: /^Remove the note/ }).click()
    await frame.getByText('There are no notes yet.').waitFor()
    // what was typed comes back after a dialog, while which the page is gone
    await moveIntoFrame(page)
    await frame.getByLabel('A note for the others').fill('a draft')
    await page.getByRole('button', { name: /^Commands/ }).click()
    await page.getByPlaceholder('Go to, start, search …').waitFor()
    expect(await page.locator('iframe').count()).to.equal(0)
    await page.keyboard.press('Escape')
    await until(
      () => frame.getByLabel('A note for the others').inputValue(),
      text => text === 'a draft'
    )
    // the same notes as a view, in another place
    await moveIntoFrame(page)
    await frame.getByRole('button', { name: 'Add' }).click()
    await frame.getByRole('listitem').getByText('a draft').waitFor()
    await page.getByRole('link', { name: 'Overview', exact: true }).click()
    await panel.getByRole('cell', { name: 'a draft' }).waitFor()
    await panel.getByRole('button', { name: 'Remove' }).click()
    const question = page.getByRole('dialog').getByText('Remove the note for everyone?')
    await question.waitFor()
    // what is read again meanwhile closes no dialog
    const reads = () => view.requests.filter(request => request.endsWith('/notes_panel/view')).length
    const before = reads()
    expect((await runSvc(['reload'], { home })).code).to.equal(0)
    await until(
      async () => reads(),
      count => count > before
    )
    await page.waitForTimeout(1_000)
    expect(await question.isVisible()).to.equal(true)
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await panel.getByText('Nothing here yet').waitFor()
    await page.getByRole('link', { name: 'Notes', exact: true }).click()
    await frame.getByText('There are no notes yet.').waitFor()
    expect(problems.filter(text => !/ERR_|network/i.test(text))).to.deep.equal([])
    // last, because it asks for the style sheets, which the policy of the page refuses
    await expectAccessible(page, 'a page of a plugin')
  })
})
