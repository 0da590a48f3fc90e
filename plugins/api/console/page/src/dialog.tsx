import { Dialog } from '@base-ui/react/dialog'
import type { ReactNode } from 'react'

interface PanelProps {
  readonly title: string
  readonly isOpen: boolean
  readonly onClose: () => void
  readonly children: ReactNode
}

/** A dialog over the page. Escape and the backdrop close it. */
export function Panel({ title, isOpen, onClose, children }: PanelProps) {
  return (
    <Dialog.Root open={isOpen} onOpenChange={open => !open && onClose()}>
      <Dialog.Portal>
        <Dialog.Backdrop className="backdrop" />
        <Dialog.Popup className="panel">
          <Dialog.Title className="panel-title">{title}</Dialog.Title>
          {children}
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  )
}
