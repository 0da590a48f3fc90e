import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { describeWith } from '../support/needs.ts'
import { until } from '../support/wait.ts'
import { type HostilePages, openHostilePages, READ } from './support/hostile-page.ts'

// What docs/explanation/security-model.md says of pages of plugins below "What a browser does not hold". A test that fails here is good
// news: a browser holds more, and the page and the consent to such pages can say so.
describeWith('chromium', 'today’s browser does not hold a page of a plugin back', function () {
  this.timeout(120_000)
  let pages: HostilePages
  before(async () => {
    pages = await openHostilePages()
  })
  after(() => pages?.[Symbol.asyncDispose]())

  it('from data channels of WebRTC: a packet goes to any host', async () => {
    const host = createSocket('udp4')
    try {
      host.bind(0, '127.0.0.1')
      await once(host, 'listening')
      const packet = once(host, 'message')
      const { frame, context } = await pages.openPage('hostile', READ)
      await frame.evaluate(`void (async () => {
        const peer = new RTCPeerConnection({ iceServers: [{ urls: 'stun:127.0.0.1:${(host.address() as AddressInfo).port}' }] })
        peer.createDataChannel('x')
        await peer.setLocalDescription(await peer.createOffer())
      })()`)
      expect(((await packet) as [Buffer])[0].length).to.be.greaterThan(0)
      await context.close()
    } finally {
      host.close()
    }
  })

  it('from a bare connection to another host, before it refuses that the frame goes there', async () => {
    const { frame, context } = await pages.openPage('hostile', READ)
    const { connections, requests, url } = pages.outside
    const before = connections()
    await frame.evaluate(`void (location.href = "${url}/gone")`)
    await until(
      async () => connections(),
      count => count > before
    )
    expect(requests).to.deep.equal([])
    await context.close()
  })

  it('from the focus, also of an inert frame: so the console stops the page', async () => {
    const { frame, page, context } = await pages.openPage('hostile', READ)
    await page.mouse.move(5, 790)
    await page.getByRole('heading', { name: 'Hostile', level: 1 }).focus()
    await page.evaluate(`document.querySelector('iframe').inert = true`)
    await frame.evaluate('void setTimeout(() => window.focus())')
    await page
      .getByRole('alert')
      .getByText(/took the keyboard focus/)
      .waitFor()
    await context.close()
  })
})
