"""A convolution layer in numpy, and a timing of its forward pass."""

import csv
import time

import numpy as np

BATCH, IN_CHANNELS, HEIGHT, WIDTH = 10, 3, 32, 32
OUT_CHANNELS, KERNEL_SIZE, STRIDE, PADDING = 16, 3, 1, 1
REPEATS = 3


class Conv2DLayer:
    """A 2D convolution with square kernels: every output is a kernel laid over a patch of the input, plus a bias."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0):
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.weights = 0.1 * np.random.randn(out_channels, in_channels, kernel_size, kernel_size)
        self.biases = np.zeros(out_channels)

    def forward(self, x):
        """Map (batch, in_channels, height, width) to (batch, out_channels, out_height, out_width)."""
        batch, _, height, width = x.shape
        out_height = (height + 2 * self.padding - self.kernel_size) // self.stride + 1
        out_width = (width + 2 * self.padding - self.kernel_size) // self.stride + 1
        edge = (self.padding, self.padding)
        padded = np.pad(x, ((0, 0), (0, 0), edge, edge))

        out = np.zeros((batch, self.out_channels, out_height, out_width))
        for n in range(batch):
            for o in range(self.out_channels):
                for i in range(out_height):
                    for j in range(out_width):
                        total = self.biases[o]
                        for c in range(self.in_channels):
                            for u in range(self.kernel_size):
                                for v in range(self.kernel_size):
                                    pixel = padded[n, c, i * self.stride + u, j * self.stride + v]
                                    total += pixel * self.weights[o, c, u, v]
                        out[n, o, i, j] = total
        return out


def main():
    """Time the forward pass and write the seconds it takes."""
    np.random.seed(0)
    layer = Conv2DLayer(IN_CHANNELS, OUT_CHANNELS, KERNEL_SIZE, STRIDE, PADDING)
    x = np.random.randn(BATCH, IN_CHANNELS, HEIGHT, WIDTH)

    seconds = []
    for repeat in range(REPEATS):
        started = time.perf_counter()
        out = layer.forward(x)
        seconds.append(time.perf_counter() - started)
        print(f"forward pass {repeat + 1}: {seconds[-1]:.4f} s")

    median = float(np.median(seconds))
    print(f"output shape: {out.shape}")
    print(f"median: {median:.4f} s")
    with open("submission.csv", "w", newline="") as file:
        csv.writer(file).writerow([median])


if __name__ == "__main__":
    main()
