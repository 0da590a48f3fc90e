import { definePlugin } from '@svc/core'
import { Tools } from '@svc/core/contracts'
import { createConvertTime } from './convert-time.ts'
import { createCurrentTime } from './current-time.ts'

export default definePlugin({
  setup(scope) {
    scope.add(Tools, 'current_time', createCurrentTime())
    scope.add(Tools, 'convert_time', createConvertTime())
  },
})
