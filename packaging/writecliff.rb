# Homebrew formula for Linux. The formula compiles the source archive, and pip downloads the required Python packages.
class Writecliff < Formula
  desc "@description@"
  url "@source@"
  version "@version@"
  sha256 "@sha256@"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on "rust" => :build
  depends_on :linux # the simulator's timed I/O uses io_uring
  depends_on "python@@python@"

  def install
    system "python@python@", "-m", "venv", libexec
    system libexec/"bin/pip", "install", "--no-cache-dir", buildpath
    bin.install_symlink libexec/"bin/writecliff"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/writecliff --version")
    system bin/"writecliff", "demo", "--quiet", "--output", testpath/"demo"
    assert_path_exists testpath/"demo/report.html"
  end
end
