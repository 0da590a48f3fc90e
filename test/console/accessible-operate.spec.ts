import { describeWith } from '../support/needs.ts'
import { checkPages, EACH_PAGE, usePageServers } from './support/accessible.ts'

describeWith('chromium', `${EACH_PAGE}: overview, chats and the server`, function () {
  this.timeout(120_000)
  checkPages('operate', usePageServers())
})
